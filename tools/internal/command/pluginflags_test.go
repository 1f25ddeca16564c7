// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/command"
)

// teller writes a program that is no plugin: it prints its arguments and its variable SAYS, and ends. A file of a
// cluster names it, with arguments, a variable and a limit.
func teller(t *testing.T) (program, file string) {
	t.Helper()
	dir := t.TempDir()
	program, file = filepath.Join(dir, "teller"), filepath.Join(dir, "cluster.yaml")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho \"args=$* says=$SAYS other=$OTHER\" >&2\nexit 3\n"), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(`cluster: {name: c}
own-section: {of: the program}
plugins:
  teller:
    policy: downing
    path: teller # Relative.
    unpinned: true
    args: [-a, b c]
    environment: {SAYS: the file, OTHER: too}
    start-timeout: 30s
  other: {policy: downing, path: nowhere, unpinned: true}
`), 0o600))
	return program, file
}

// What a file says of a plugin holds for its check, and flags take its place. What the plugin prints is shown.
func TestAPluginIsTriedAsTheFileSays(t *testing.T) {
	program, file := teller(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{program}, "args= says= other="},
		{[]string{program, "--arg=-x", "--arg", "y z", "--env", "SAYS=a;b=c"}, "args=-x y z says=a;b=c other="},
		{[]string{file, "teller"}, "args=-a b c says=the file other=too"},
		{[]string{file, "teller", "--arg", "d", "--env", "SAYS=the flag", "--start-timeout", "20s"}, "args=d says=the flag other=too"},
	} {
		for _, verb := range []string{"check", "test"} {
			status, stdout, stderr := plugin(append([]string{verb}, c.args...)...)
			require.Equal(t, map[string]int{"check": command.StatusFailed, "test": command.StatusUsage}[verb], status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, "exit status 3")
			require.Contains(t, stderr, "\n  "+c.want+"\n", "%s %v", verb, c.args)
			require.Contains(t, stderr, "Printed by the plugin, the last ")
		}
	}
}

func TestWhatCannotBeTriedSaysWhy(t *testing.T) {
	program, file := teller(t)
	settings := filepath.Join(filepath.Dir(file), "settings.yaml")
	require.NoError(t, os.WriteFile(settings, []byte("a: [\n"), 0o600))
	none := filepath.Join(filepath.Dir(file), "none.yaml")
	require.NoError(t, os.WriteFile(none, []byte("cluster: {name: c}\n"), 0o600))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{file}, "say which plugin: other, teller"},
		{[]string{file, "tell"}, `has no plugin "tell" but other, teller`},
		{[]string{none, "x"}, "has no plugins"},
		{[]string{file + ".yaml"}, "no such file"},
		{[]string{program, "--settings", settings}, "settings.yaml: yaml"},
		{[]string{program, "--start-timeout", "1h"}, "start-timeout: 1h0m0s is not from 100ms to 1m"},
		{[]string{program, "--tasks", "3"}, "limits.tasks: 3 is neither"},
		{[]string{program, "--memory-bytes", "3"}, "limits.memory-bytes: 3 is neither"},
		{[]string{program, "--call-timeout", "10s"}, "call-timeout: 10s is not from"},
		{[]string{program, "--env", "PLUGIN_X=1"}, "environment: PLUGIN_X belongs to the handshake"},
	} {
		for _, verb := range []string{"check", "test"} {
			status, stdout, stderr := plugin(append([]string{verb}, c.args...)...)
			require.NotEqual(t, command.StatusOK, status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, c.want, "%s %v", verb, c.args)
		}
	}
}

// A start that takes longer than is permitted says how to permit more, and the flag for that is there.
func TestAStartHasTheTimeThatItIsGiven(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slow")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\nexec /bin/sleep 600\n"), 0o700))
	status, _, stderr := plugin("check", path, "--start-timeout", "150ms")
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "not ready after 150ms")
}

// Both commands that try plugins have the same flags for that, explained alike, within 80 columns and with examples.
func TestBothTrialsHaveTheSameFlags(t *testing.T) {
	status, check, _ := plugin("check", "-h")
	require.Equal(t, command.StatusOK, status)
	status, test, _ := plugin("test", "-h")
	require.Equal(t, command.StatusOK, status)
	for _, help := range []string{check, test} {
		require.Contains(t, help, "Examples:")
		require.Contains(t, help, "cluster.yaml witness")
		for line := range strings.Lines(help) {
			require.LessOrEqual(t, len(line), 81, line)
		}
	}
	for _, flag := range []string{"settings=FILE", "arg=ARG", "env=NAME=VALUE", "start-timeout=TIME", "call-timeout=TIME", "memory-bytes=BYTES", "tasks=N"} {
		require.Contains(t, check, " --"+flag)
		require.Contains(t, test, " --"+flag)
	}
}
