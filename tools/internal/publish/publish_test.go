// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/publish"
)

func repository(t *testing.T) string {
	t.Helper()
	repo := t.TempDir()
	for name, text := range map[string]string{
		".gitignore": "*.out\n", "go.work": "go 1.26.0\n",
		"a/go.mod": "module example.test/a\n\ngo 1.26.0\n", "a/a.go": "package a\n", "a/junk.out": "x", "a/LICENSE": "l",
		"a/nested/go.mod": "module example.test/a/nested\n\ngo 1.26.0\n", "a/nested/n.go": "package nested\n",
		"b/go.mod":                 "module example.test/b\n\ngo 1.26.0\n\nrequire (\n\texample.test/a v0.0.0\n\texample.com/other v1.0.0\n)\n\nreplace example.test/a => ../a\n",
		"b/b.go":                   "package b\n\nimport _ \"example.test/a\"\n",
		"b/testdata/go.mod":        "module example.test/fixture\n",
		"internal/devtools/go.mod": "module example.test/devtools\n",
	} {
		path := filepath.Join(repo, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	require.NoError(t, exec.CommandContext(t.Context(), "git", "-C", repo, "init", "-q").Run())
	return repo
}

func names(t *testing.T, path string) []string {
	t.Helper()
	r, err := zip.OpenReader(path)
	require.NoError(t, err)
	defer r.Close() //nolint:errcheck // Only read.
	var out []string
	for _, f := range r.File {
		out = append(out, f.Name)
	}
	slices.Sort(out)
	return out
}

func TestTreeIsPackedAsAUserReceivesIt(t *testing.T) {
	repo, out := repository(t), t.TempDir()
	const v = "v0.0.1-test.1"
	paths, err := publish.Tree(t.Context(), repo, v, out)
	require.NoError(t, err)
	require.Equal(t, []string{"example.test/a", "example.test/a/nested", "example.test/b"}, paths)

	at := filepath.Join(out, "example.test", "b", "@v")
	gomod, err := os.ReadFile(filepath.Join(at, v+".mod"))
	require.NoError(t, err)
	require.Contains(t, string(gomod), "example.test/a "+v)
	require.Contains(t, string(gomod), "example.com/other v1.0.0")
	require.NotContains(t, string(gomod), "replace")
	list, err := os.ReadFile(filepath.Join(at, "list"))
	require.NoError(t, err)
	require.Equal(t, v+"\n", string(list))
	require.FileExists(t, filepath.Join(at, v+".info"))

	root := "example.test/a@" + v + "/"
	require.Equal(t, []string{root + "LICENSE", root + "a.go", root + "go.mod"},
		names(t, filepath.Join(out, "example.test", "a", "@v", v+".zip")), "no ignored file, no nested module")
	original, err := os.ReadFile(filepath.Join(repo, "b", "go.mod"))
	require.NoError(t, err)
	require.Contains(t, string(original), "replace", "the tree is untouched")
}

func TestBadRequestsAreRefused(t *testing.T) {
	repo := repository(t)
	for _, version := range []string{"", "1.0.0", "v1", "latest"} {
		_, err := publish.Tree(t.Context(), repo, version, t.TempDir())
		require.ErrorContains(t, err, "is not a full version")
	}
	_, err := publish.Tree(t.Context(), t.TempDir(), "v1.0.0", t.TempDir())
	require.ErrorContains(t, err, "git ls-files")
	require.NoError(t, os.WriteFile(filepath.Join(repo, "a", "go.mod"), []byte("go 1.26.0\n"), 0o600))
	_, err = publish.Tree(t.Context(), repo, "v1.0.0", t.TempDir())
	require.ErrorContains(t, err, "no module line")
}

func TestDeletedFileIsNoObstacle(t *testing.T) {
	repo := repository(t)
	require.NoError(t, exec.CommandContext(t.Context(), "git", "-C", repo, "add", ".").Run())
	require.NoError(t, os.Remove(filepath.Join(repo, "a", "a.go")))
	_, err := publish.Tree(t.Context(), repo, "v1.0.0", t.TempDir())
	require.NoError(t, err)
}
