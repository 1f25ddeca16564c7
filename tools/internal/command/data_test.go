// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/durable"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/tools/internal/command"
)

func data(args ...string) (status int, stdout, stderr string) {
	return output(command.Program{Name: "quorate", Help: "A cluster toolkit.", Commands: []command.Command{
		{Name: "data", Help: "Look at, take out and mend durable data", Args: &command.Data{}},
		{Name: "version", Help: "Print the version", Args: &command.Version{}},
	}}, args...)
}

// kept returns a directory with durable data of a node that has stopped, and its log.
func kept(t *testing.T) (dir, log string) {
	t.Helper()
	config := durable.Default()
	config.Dir, config.Cluster = filepath.Join(t.TempDir(), "data"), "bank"
	s, err := durable.Open(t.Context(), config)
	require.NoError(t, err)
	for _, key := range []string{"a", "b", "c"} {
		batch := store.Batch{Group: "all", Meta: []byte("m"), Put: []store.Record{{Key: key, Value: []byte("value of " + key)}}}
		require.NoError(t, s.Apply(t.Context(), []store.Batch{batch}))
	}
	require.NoError(t, s.Close())
	logs, err := filepath.Glob(filepath.Join(config.Dir, "log-*"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
	return config.Dir, logs[0]
}

// damage changes a text in a file.
func damage(t *testing.T, file, from, to string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), from)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), from, to, 1)), 0o600))
}

func TestDataThatIsWhole(t *testing.T) {
	dir, log := kept(t)
	status, stdout, stderr := data("data", "check", dir)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Contains(t, stdout, "cluster      bank\n")
	require.Contains(t, stdout, "starts       1\n")
	require.Contains(t, stdout, "keys         3 in 1 group, 33 bytes\n")
	require.Contains(t, stdout, "group        \"all\": 3 keys, 33 bytes, meta 1 bytes\n")
	require.Contains(t, stdout, filepath.Base(log))
	require.True(t, strings.HasSuffix(stdout, "ok\n"))

	status, stdout, _ = data("--json", "data", "check", dir)
	require.Equal(t, command.StatusOK, status)
	var r durable.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.Equal(t, int64(3), r.Keys)

	const lines = `{"group":"all","meta":"bQ=="}
{"group":"all","key":"a","value":"dmFsdWUgb2YgYQ=="}
{"group":"all","key":"b","value":"dmFsdWUgb2YgYg=="}
{"group":"all","key":"c","value":"dmFsdWUgb2YgYw=="}
`
	status, stdout, stderr = data("data", "export", dir)
	require.Equal(t, command.StatusOK, status)
	require.Equal(t, strings.Split(lines, "\n"), strings.Split(stdout, "\n"))
	require.Empty(t, stderr)
	file := filepath.Join(t.TempDir(), "x")
	status, stdout, _ = data("--json", "data", "export", "-to", file, dir)
	require.Equal(t, command.StatusOK, status)
	require.JSONEq(t, `{"keys": 3}`, stdout)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, strings.Split(lines, "\n"), strings.Split(string(text), "\n"))

	status, stdout, _ = data("data", "repair", dir)
	require.Equal(t, command.StatusOK, status)
	require.Contains(t, stdout, "ok, there is nothing to repair\n")
}

func TestDataThatIsDamaged(t *testing.T) {
	dir, log := kept(t)
	damage(t, log, "value of b", "value of x")
	status, stdout, stderr := data("data", "check", dir)
	require.Equal(t, command.StatusFailed, status)
	require.Equal(t, "quorate: the data is damaged\n", stderr)
	fits(t, stdout)
	flat := strings.Join(strings.Fields(stdout), " ")
	require.Contains(t, flat, "keys 2 in 1 group, 22 bytes")
	require.Contains(t, flat, "the check sum is wrong remedy look with quorate data check")
	require.Contains(t, flat, "unreadable")

	status, stdout, stderr = data("data", "export", dir)
	require.Equal(t, command.StatusFailed, status)
	require.Equal(t, 3, strings.Count(stdout, "\n"), "the meta and two keys")
	require.Contains(t, stderr, "not everything can be read")

	status, stdout, stderr = data("data", "repair", dir)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	flat = strings.Join(strings.Fields(stdout), " ")
	require.Contains(t, flat, "put aside "+filepath.Base(log)+".damaged")
	require.Contains(t, flat, "put aside manifest.damaged")
	require.Contains(t, flat, "next start the node")
	status, stdout, _ = data("data", "check", dir)
	require.Equal(t, command.StatusOK, status)
	require.Contains(t, stdout, "keys         2 in 1 group, 22 bytes\n")
	status, stdout, stderr = data("data", "export", log+".damaged")
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, stderr, "it is a log")
	require.Empty(t, stdout)
}

func TestDataThatIsNotThere(t *testing.T) {
	empty := t.TempDir()
	for _, verb := range []string{"check", "export", "repair"} {
		status, stdout, stderr := data("data", verb, filepath.Join(empty, "nowhere"))
		require.Equal(t, command.StatusUsage, status, verb)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "nowhere: no such file or directory: name the directory of a store")
		status, _, stderr = data("data", verb, empty)
		require.Equal(t, command.StatusUsage, status, verb)
		require.Contains(t, stderr, "there is no store in it")
		status, stdout, _ = data("data", verb, "-h")
		require.Equal(t, command.StatusOK, status)
		fits(t, stdout)
		require.Contains(t, stdout, "Examples:")
	}
	dir, _ := kept(t)
	config := durable.Default()
	config.Dir, config.Cluster = dir, "bank"
	s, err := durable.Open(t.Context(), config)
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	status, _, stderr := data("data", "check", dir)
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "another process uses it: stop the node")
	status, _, stderr = data("--json", "data", "export", dir)
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, stderr, "-to")
}
