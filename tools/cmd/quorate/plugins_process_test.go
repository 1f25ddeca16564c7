// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The commands about files that ask plugins for their settings, with a real plugin. It says that its greeting is text;
// a variable makes it say something else.
func TestFilesAreHeldToWhatPluginsSayOfTheirSettings(t *testing.T) {
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "served"), "../../../plugins/host/testdata/served")
	printed, err := build.CombinedOutput()
	require.NoError(t, err, "%s", printed)
	file := filepath.Join(dir, "cluster.yaml")
	quorate := func(env, settings string, args ...string) (status int, stdout, stderr string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `cluster: {name: c}
node: {address: "127.0.0.1:7946"}
plugins:
  greeter:
    policy: downing
    path: served
    unpinned: true
    start-timeout: 30s
    environment: {%s}
    settings:
      %s
`, env, settings), 0o600))
		var out, errs bytes.Buffer
		status = program().Run(args, &out, &errs)
		return status, strings.ReplaceAll(out.String(), dir+"/", ""), errs.String()
	}
	check := func(env, settings string) (status int, stdout string) {
		t.Helper()
		status, stdout, _ = quorate(env, settings, "config", "check", "--plugins", file)
		return status, stdout
	}
	status, stdout := check("", "greetin: hello\n      delay: soon")
	require.Equal(t, 2, status)
	require.Equal(t, `cluster.yaml:12: plugins.greeter.settings.delay: "soon" is no duration such as 3s or 500ms
cluster.yaml:11: plugins.greeter.settings.greetin: is unknown; there are delay, greeting, panic
`, stdout)
	status, stdout, _ = quorate("", "greetin: hello", "config", "check", file)
	require.Zero(t, status, "nothing is started")
	require.NotContains(t, stdout, "greetin")

	status, stdout = check("", "greeting: hello")
	require.Zero(t, status)
	require.NotContains(t, stdout, "greeter")
	status, stdout = check("SCHEMA: panic", "greetin: hello")
	require.Zero(t, status, "a node starts it, and it refuses its settings by itself")
	require.Contains(t, stdout, "warning: cluster.yaml:4: plugins.greeter: what it says of its settings cannot be used, and they are not checked")
	status, stdout, _ = quorate("LEAVE_BEHIND: /nowhere/at/all", "greeting: hello", "config", "check", "--plugins", file)
	require.Equal(t, 2, status)
	require.Contains(t, stdout, "cluster.yaml:4: plugins.greeter: ")

	status, stdout, _ = quorate("", "greeting: hello", "config", "reference", "plugins.greeter.settings.greeting", file)
	require.Zero(t, status)
	require.Contains(t, stdout, "  meaning    What is logged for each question.\n  type       text\n")
	status, stdout, _ = quorate("", "greeting: hello", "config", "reference", "--markdown", "plugins.greeter", file)
	require.Zero(t, status)
	require.Contains(t, stdout, "| `plugins.greeter.settings.delay` | duration | `0s` |")
	for want, key := range map[string]string{`has no plugin "other" but greeter`: "plugins.other", `"node" is no plugin`: "node"} {
		status, _, stderr := quorate("", "greeting: hello", "config", "reference", key, file)
		require.Equal(t, 2, status)
		require.Contains(t, stderr, want)
	}
	status, stdout, _ = quorate("", "greeting: hello", "config", "schema", file)
	require.Zero(t, status)
	require.Contains(t, stdout, `"$id": "https://raw.githubusercontent.com/quorate/quorate/main/docs/cluster.schema.json/plugins/greeter"`)
	status, stdout, stderr := quorate("SCHEMA: panic", "greeting: hello", "config", "schema", file)
	require.Zero(t, status)
	require.NotContains(t, stdout, "plugins/greeter")
	require.Contains(t, stderr, "left out: ")
	status, _, stderr = quorate("SCHEMA: panic", "greeting: hello", "config", "reference", "plugins.greeter", file)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "cannot be used")
	status, stdout, _ = quorate("SCHEMA: '{'", "greeting: hello", "plugin", "check", file, "greeter")
	require.Zero(t, status)
	require.Contains(t, strings.Join(strings.Fields(stdout), " "), "settings not described, which is a fault of the plugin: it is no JSON")
}
