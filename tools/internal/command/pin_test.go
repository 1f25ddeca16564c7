// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
	"github.com/quorate/quorate/tools/internal/command"
)

// plugin runs a command of quorate plugin.
func plugin(args ...string) (status int, stdout, stderr string) {
	program := command.Program{Name: "quorate", Commands: []command.Command{{Name: "plugin", Args: &command.Plugin{}}}}
	return output(program, append([]string{"plugin"}, args...)...)
}

// The SHA-256 checksums of the executables one and two, each of which holds its own name.
const (
	sumOne = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
	sumTwo = "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
)

const pinnable = `# A cluster.
cluster: {name: c}
node: {address: "127.0.0.1:7946"}
plugins:
  first: # Decides.
    policy: downing
    path: bin/one # Relative.
    settings: {url: "http://x"}
  second: {policy: allocation, path: "bin/two", settings: {skew: 2}}
  third:
    sha256: '0000'
    path: bin/one
    policy: allocation
`

// Pinning changes the checksums in a file and nothing else, and a node loads the result.
func TestPin(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	for _, name := range []string{"one", "two"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", name), []byte(name), 0o700))
	}
	path := filepath.Join(dir, "cluster.yaml")
	require.NoError(t, os.WriteFile(path, []byte(pinnable), 0o640))

	status, stdout, stderr := plugin("pin", "-check", path)
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stdout, "first is not pinned")
	require.Contains(t, stdout, "third is pinned to another file")
	require.Contains(t, stderr, "quorate plugin pin "+path)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, pinnable, string(text))

	status, stdout, stderr = plugin("pin", path)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Contains(t, stdout, "second pinned")
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	want := strings.NewReplacer(
		"# Relative.\n", "# Relative.\n    sha256: "+sumOne+"\n", `"bin/two"`, `"bin/two", sha256: `+sumTwo, "'0000'", sumOne,
	).Replace(pinnable)
	require.Equal(t, want, string(text))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	c, err := cluster.Load(cluster.WithFile(path), cluster.WithPlugins(host.New()))
	require.NoError(t, err)
	require.Equal(t, plugins.Checksums{sumTwo}, c.Plugins["second"].SHA256)
	require.Equal(t, filepath.Join(dir, "bin/one"), c.Plugins["first"].Path)

	status, stdout, _ = plugin("pin", "-check", path)
	require.Equal(t, command.StatusOK, status)
	require.Contains(t, stdout, "first is pinned already")
}

// Where a plugin has a checksum for each platform, that of this machine is added to them.
func TestPinsOfSeveralPlatforms(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "one"), []byte("one"), 0o700))
	other := strings.Repeat("ab", 32)
	for text, want := range map[string]string{
		"sha256: [" + other + "]":                                             "sha256: [" + other + ", " + sumOne + "]",
		"sha256: ['" + other + "', " + sumOne + "]":                           "",
		"sha256:\n      - " + other + " # amd64":                              "sha256:\n      - " + other + " # amd64\n      - " + sumOne,
		"sha256:\n    - \"" + other + "\"\n    - " + sumTwo + "\n    user: x": "sha256:\n    - \"" + other + "\"\n    - " + sumTwo + "\n    - " + sumOne + "\n    user: x",
	} {
		path := filepath.Join(dir, "cluster.yaml")
		const head = "plugins:\n  x:\n    path: one\n    policy: allocation\n    "
		require.NoError(t, os.WriteFile(path, []byte(head+text+"\n"), 0o600))
		status, stdout, stderr := plugin("pin", path)
		require.Equal(t, command.StatusOK, status, stderr)
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		if want == "" {
			require.Contains(t, stdout, "x is pinned already")
			want = text
		}
		require.Equal(t, head+want+"\n", string(got))
		status, _, _ = plugin("pin", "-check", path)
		require.Equal(t, command.StatusOK, status)
	}
}

func TestWhatCannotBePinned(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct{ file, text, want string }{
		"no file":         {"none.yaml", "", "no such file"},
		"no executable":   {"a.yaml", "plugins: {x: {path: nowhere}}", "plugins.x: open"},
		"empty list":      {"a.yaml", "plugins: {x: {path: a.yaml, sha256: []}}", "plugins.x: sha256 is an empty list"},
		"no path":         {"a.yaml", "plugins: {x: {policy: downing}}", "plugins.x: has no path"},
		"another format":  {"a.json", "{}", "by hand"},
		"not well formed": {"a.yaml", "plugins: [", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, test.file)
			if test.text != "" {
				require.NoError(t, os.WriteFile(path, []byte(test.text), 0o600))
			}
			status, _, stderr := plugin("pin", path)
			require.NotEqual(t, command.StatusOK, status)
			require.Contains(t, stderr, test.want)
		})
	}
	path := filepath.Join(dir, "b.yaml")
	require.NoError(t, os.WriteFile(path, []byte("cluster: {name: c}\n"), 0o600))
	status, stdout, _ := plugin("pin", path)
	require.Equal(t, command.StatusOK, status)
	require.Contains(t, stdout, "has no plugins")
}

// The check of a plugin fails with a message for a file that is missing, and for a program
// that is no plugin.
func TestCheckOfWhatIsNoPlugin(t *testing.T) {
	status, _, stderr := plugin("check", filepath.Join(t.TempDir(), "nothing"))
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "nothing")
	status, _, stderr = plugin("check", "/bin/true")
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "not a plugin")
}
