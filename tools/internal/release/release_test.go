// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/release"
)

// A small repository is released. The tests look at the tags, at the branch main, at a
// program that is installed from the tags, at a draft, and last at what is refused.

const (
	changes = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## v0.0.1 - 2026-01-01\n\n- Older.\n"
	goLine  = "\n\ngo 1.26.0\n"
)

// repository commits a tree of three modules: a, then b, which requires a, and copies,
// which gets no release. planted replaces files by their names; a file with the text "" is
// left out.
func repository(t *testing.T, planted map[string]string) string {
	t.Helper()
	files := map[string]string{
		".gitignore": "*.out\n", "go.work": "go 1.26.0\n\nuse (\n\t./a\n\t./b\n\t./copies\n)\n", "CHANGELOG.md": changes,
		"a/go.mod": "module example.test/a" + goLine, "a/a.go": "package a\n\n// Limit limits.\nconst Limit = 3\n",
		"a/LICENSE": "l", "a/CHANGELOG.md": changes, "docs/api/a.txt": "a: const Limit untyped int = 3\n",
		"b/go.mod":       "module example.test/b" + goLine + "\nrequire example.test/a v0.0.0\n\nreplace example.test/a => ../a\n",
		"b/cmd/b/b.go":   "package main\n\nimport \"example.test/a\"\n\nfunc main() { println(a.Limit) }\n",
		"b/LICENSE":      "l",
		"b/CHANGELOG.md": changes,
		"copies/go.mod":  "module example.test/copies" + goLine + "\nrequire example.test/a v0.0.0\n\nreplace example.test/a => ../a\n",
		"copies/c.go":    "package copies\n\nimport _ \"example.test/a\"\n", "copies/CHANGELOG.md": changes,
	}
	maps.Copy(files, planted)
	repo := t.TempDir()
	for name, text := range files {
		if text != "" {
			write(t, repo, name, text)
		}
	}
	git(t, repo, "init", "-q", "-b", "main")
	for _, setting := range [][2]string{{"user.name", "tester"}, {"user.email", "tester@localhost"}, {"commit.gpgsign", "false"}, {"tag.gpgsign", "false"}} {
		git(t, repo, "config", setting[0], setting[1])
	}
	git(t, repo, "add", "-A")
	git(t, repo, "commit", "-q", "-m", "all")
	return repo
}

func write(t *testing.T, repo, name, text string) {
	t.Helper()
	name = filepath.Join(repo, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

func git(t *testing.T, repo string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", repo}, args...)...).CombinedOutput()
	require.NoError(t, err, "git %s: %s", strings.Join(args, " "), out)
	return string(out)
}

func without() map[string]string { return map[string]string{"copies": "programs to copy"} }

// cut makes the next release of a repository, or a draft v0.3.0. It names the author of the commits itself:
// the user who runs the test may have told git none.
func cut(t *testing.T, repo string, draft bool) *release.Release {
	t.Helper()
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "tester")
		t.Setenv("GIT_"+who+"_EMAIL", "tester@localhost")
	}
	plan := release.Plan{
		Repo: repo, Clone: filepath.Join(t.TempDir(), "clone"), Without: without(), Day: time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC),
	}
	if draft {
		plan.Draft = "v0.3.0"
	}
	r, err := release.Cut(t.Context(), plan)
	require.NoError(t, err)
	return r
}

func proxy(t *testing.T) *release.Proxy {
	t.Helper()
	p, err := release.NewProxy(t.TempDir())
	require.NoError(t, err)
	return p
}

func TestTagsHoldVersionsAndNoReplaces(t *testing.T) {
	repo := repository(t, nil)
	before := git(t, repo, "rev-parse", "HEAD")
	r := cut(t, repo, false)
	require.Equal(t, []string{"a/v0.1.0", "b/v0.1.0"}, r.Tags)
	require.Equal(t, "a/v0.1.0\nb/v0.1.0\n", git(t, r.Clone, "tag"))

	gomod := git(t, r.Clone, "show", "b/v0.1.0:b/go.mod")
	require.Contains(t, gomod, "example.test/a v0.1.0")
	require.NotContains(t, gomod, "replace")
	require.Contains(t, git(t, r.Clone, "show", "b/v0.1.0:b/go.sum"), "example.test/a v0.1.0 h1:")
	require.Equal(t, before, git(t, repo, "rev-parse", "HEAD"))
	require.Empty(t, git(t, repo, "status", "--porcelain")+git(t, repo, "tag"), "the working repository is only read")
	require.Contains(t, r.Push("https://example.test/r.git", "main"), "push --atomic https://example.test/r.git HEAD~1:refs/heads/main a/v0.1.0 b/v0.1.0")
}

func TestMainGetsTheVersionAndKeepsItsReplaces(t *testing.T) {
	r := cut(t, repository(t, nil), false)
	for _, dir := range []string{"b", "copies"} {
		gomod := git(t, r.Clone, "show", "HEAD~1:"+dir+"/go.mod")
		require.Contains(t, gomod, "require example.test/a v0.1.0")
		require.Contains(t, gomod, "replace example.test/a => ../a")
	}
	for _, name := range []string{"a/CHANGELOG.md", "b/CHANGELOG.md"} {
		require.Equal(t, strings.Replace(changes, "## [Unreleased]\n", "## Unreleased\n\n## v0.1.0 - 2026-05-04\n", 1),
			git(t, r.Clone, "show", "HEAD~1:"+name))
	}
	require.NotContains(t, git(t, r.Clone, "diff", "--name-only", "HEAD~2", "HEAD"), "a.go")
}

// A program is installed from the content of the tags, without any network.
func TestProgramIsInstalledFromTheTags(t *testing.T) {
	r, p := cut(t, repository(t, nil), false), proxy(t)
	require.NoError(t, r.Verify(t.Context(), p))
	t.Setenv("GOPROXY", "off")
	env, err := p.Env(t.Context(), "example.test")
	require.NoError(t, err)
	bin := t.TempDir()
	install := exec.CommandContext(t.Context(), "go", "install", "example.test/b/cmd/b@v0.1.0")
	install.Dir, install.Env = bin, append(append(os.Environ(), env...), "GOBIN="+bin)
	out, err := install.CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.CommandContext(t.Context(), filepath.Join(bin, "b")).CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, "3\n", string(out))
}

// goRun runs the program of a module, and returns what it prints on its standard error.
func goRun(t *testing.T, dir string, env []string) string {
	t.Helper()
	run := exec.CommandContext(t.Context(), "go", "run", "-mod=mod", ".")
	run.Dir, run.Env = dir, append(os.Environ(), env...)
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	lines := strings.SplitAfter(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1] + "\n"
}

func TestDraftTakesTheTreeAsItStands(t *testing.T) {
	repo := repository(t, map[string]string{"a/CHANGELOG.md": "# Changelog\n"})
	write(t, repo, "a/new.go", "package a\n")
	write(t, repo, "a/junk.out", "x")
	require.NoError(t, os.Remove(filepath.Join(repo, "docs", "api", "a.txt")))
	r := cut(t, repo, true)
	require.NoError(t, r.Verify(t.Context(), proxy(t)))
	held := git(t, r.Clone, "ls-tree", "-r", "--name-only", "a/v0.3.0")
	require.Contains(t, held, "a/new.go")
	require.NotContains(t, held, "junk.out")
	require.NotContains(t, held, "docs/api/a.txt")
}

func TestCutRefusesWhatItCannotMake(t *testing.T) {
	repo := repository(t, nil)
	for _, version := range []string{"0.3.0", "v0.3", "v0.3.0+meta"} {
		_, err := release.Cut(t.Context(), release.Plan{Repo: repo, Draft: version, Clone: filepath.Join(t.TempDir(), "clone"), Without: without()})
		require.ErrorContains(t, err, "is not a full version")
	}
	_, err := release.Cut(t.Context(), release.Plan{Repo: repo, Clone: t.TempDir(), Without: without()})
	require.ErrorContains(t, err, "a release is made in a new directory")
}
