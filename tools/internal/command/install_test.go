// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/command"
)

// executable is a program that is no plugin.
const executable = "#!/bin/sh\nexit 3\n"

// installation is a file of a cluster, and an executable.
func installation(t *testing.T, text string) (file, source string) {
	t.Helper()
	dir := t.TempDir()
	file, source = filepath.Join(dir, "cluster.yaml"), filepath.Join(dir, "witness")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o640))
	require.NoError(t, os.WriteFile(source, []byte(executable), 0o600))
	return file, source
}

// The section is added, whatever the form of the file, and everything else in it stays.
func TestAPluginIsInstalledIntoAFile(t *testing.T) {
	const section = "policy: downing\n    path: plugins/witness\n    sha256: SUM\n"
	for text, want := range map[string]string{
		"":                          "plugins:\n  witness:\n    " + section,
		"cluster: {name: c} # mine": "cluster: {name: c} # mine\nplugins:\n  witness:\n    " + section,
		"plugins:\nnode: {}\n":      "plugins:\n  witness:\n    " + section + "node: {}\n",
		"plugins: {} # none\n":      "plugins:  # none\n  witness:\n    " + section,
		"plugins: # some\n    zones: {policy: allocation, path: z} # that\n# end\n": "plugins: # some\n    witness:\n      policy: downing\n      path: plugins/witness\n      sha256: SUM\n    zones: {policy: allocation, path: z} # that\n# end\n",
	} {
		file, source := installation(t, text)
		status, stdout, stderr := plugin("install", source, file, "--policy", "downing")
		require.Equal(t, command.StatusOK, status, stderr)
		fits(t, stdout)
		place := filepath.Join(filepath.Dir(file), "plugins", "witness")
		info, err := os.Stat(place)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		_, sum, _ := strings.Cut(stdout, "sha256       ")
		require.Equal(t, strings.ReplaceAll(want, "SUM", strings.TrimSpace(sum)), string(got), text)
		status, stdout, _ = plugin("pin", "--check", file)
		if !strings.Contains(text, "zones") {
			require.Equal(t, command.StatusOK, status, stdout)
		}
		left, err := os.ReadDir(filepath.Dir(place))
		require.NoError(t, err)
		require.Len(t, left, 1)
	}
}

// What cannot be installed leaves the file as it is, and no executable.
func TestWhatCannotBeInstalledChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		args []string
		want string
	}{
		"a plugin of that name":    {"plugins:\n  witness: {policy: downing, path: x}\n", nil, "plugins.witness is there"},
		"plugins in one line":      {"plugins: {a: {policy: downing, path: x}}\n", nil, "write it by hand"},
		"a file in one line":       {"{node: {}}\n", nil, "write it by hand"},
		"no YAML":                  {"a: [\n", nil, "yaml"},
		"another checksum":         {"", []string{"--sha256", strings.Repeat("ab", 32)}, "not that of --sha256"},
		"no checksum":              {"", []string{"--sha256", "ab"}, "no checksum"},
		"no policy of ours":        {"", []string{"--policy", "dowsing"}, "is none of"},
		"no name":                  {"", []string{"--name", "../up"}, "no name of a plugin"},
		"no plugin, so no policy":  {"", []string{"--policy", ""}, "exit status 3"},
		"a directory that is none": {"", []string{"--dir", "cluster.yaml"}, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			file, source := installation(t, c.text)
			args := append([]string{"install", source, file}, c.args...)
			if !strings.Contains(strings.Join(args, " "), "--policy") {
				args = append(args, "--policy", "downing")
			}
			status, stdout, stderr := plugin(args...)
			require.NotEqual(t, command.StatusOK, status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, c.want)
			got, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, c.text, string(got))
			require.NoDirExists(t, filepath.Join(filepath.Dir(file), "plugins"))
		})
	}
	file, source := installation(t, "")
	require.NoError(t, os.Mkdir(filepath.Join(filepath.Dir(file), "plugins"), 0o700))
	other := filepath.Join(filepath.Dir(file), "plugins", "witness")
	require.NoError(t, os.WriteFile(other, []byte("other"), 0o600))
	status, _, stderr := plugin("install", source, file, "--policy", "downing")
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "is another file")
	kept, err := os.ReadFile(other)
	require.NoError(t, err)
	require.Equal(t, "other", string(kept))
}

// An executable is fetched by https, or from this machine; a server cannot send it elsewhere, nor fill the disk.
func TestAPluginIsFetched(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/witness.bin":
			_, _ = w.Write([]byte(executable))
		case "/moved":
			http.Redirect(w, r, "/witness.bin", http.StatusFound)
		case "/elsewhere":
			http.Redirect(w, r, "http://192.0.2.1/witness", http.StatusFound)
		case "/huge":
			w.Header().Set("Content-Length", "1099511627776")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	for path, want := range map[string]string{
		server.URL + "/witness.bin": "", server.URL + "/moved": "",
		server.URL + "/elsewhere": "use https", server.URL + "/huge": "no executable of up to", server.URL + "/absent": "404",
		"http://192.0.2.1/witness": "use https", "ftp://127.0.0.1/witness": "use https",
	} {
		file, _ := installation(t, "")
		var out struct{ Plugin, Policy, Path, SHA256 string }
		program := command.Program{Name: "quorate", Commands: []command.Command{{Name: "plugin", Args: &command.Plugin{}}}}
		status, stdout, stderr := output(program, "--json", "plugin", "install", path, file, "--policy", "downing", "--name", "witness")
		if want != "" {
			require.NotEqual(t, command.StatusOK, status, path)
			require.Contains(t, stderr, want)
			continue
		}
		require.Equal(t, command.StatusOK, status, stderr)
		require.NoError(t, json.Unmarshal([]byte(stdout), &out))
		require.Equal(t, "plugins/witness", out.Path)
	}
}
