// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/release"
)

// A second release of the small repository: which modules get which versions, what is refused, what a user gets who
// mixes versions, and whether requirements are too low or too high.

// releasedOnce returns a repository whose first release is published: a and b have v0.1.0.
func releasedOnce(t *testing.T) string {
	t.Helper()
	repo := repository(t, nil)
	publish(t, repo)
	return repo
}

// publish makes the next release of a repository and pushes it there, as the command says that is printed.
func publish(t *testing.T, repo string) []string {
	t.Helper()
	r := cut(t, repo, false)
	git(t, repo, "checkout", "-q", "--detach")
	args := strings.Fields(r.Push(repo, "main"))
	git(t, r.Clone, args[slices.Index(args, "push"):]...)
	git(t, repo, "checkout", "-q", "main")
	return r.Tags
}

// change commits files.
func change(t *testing.T, repo string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		write(t, repo, name, text)
	}
	git(t, repo, "add", "-A")
	git(t, repo, "commit", "-q", "-m", "change")
}

// log returns a changelog with something under "Unreleased".
func log(heading string) string {
	return "# Changelog\n\n## Unreleased\n\n### " + heading + "\n\n- It.\n"
}

// next returns the versions that modules get, as "dir version step", and what forbids the release.
func next(t *testing.T, repo string) (all []string, err error) {
	t.Helper()
	tree, err := release.Load(repo, without())
	require.NoError(t, err)
	said, err := tree.Check(t.Context())
	for _, n := range said {
		if n.Released() {
			all = append(all, n.Module.Dir+" "+n.Version+" "+n.Step.String())
		}
	}
	return all, err
}

const (
	maxA  = "package a\n\n// Limit limits.\nconst Limit = 3\n"
	aMore = maxA + "\n// More is new.\nconst More = 4\n"
	bMore = "package main\n\nimport \"example.test/a\"\n\nfunc main() { println(a.More) }\n"
)

// bRequires is the go.mod of b with a requirement of a.
func bRequires(version string) string {
	return "module example.test/b" + goLine + "\nrequire example.test/a " + version + "\n\nreplace example.test/a => ../a\n"
}

// Who has not changed gets no version, and the step is what the changelog says.
func TestOnlyWhatHasChangedGetsAVersion(t *testing.T) {
	repo := releasedOnce(t)
	all, err := next(t, repo)
	require.NoError(t, err)
	require.Empty(t, all)
	change(t, repo, map[string]string{"a/a.go": maxA + "\nfunc init() {}\n", "a/CHANGELOG.md": log("Fixed")})
	all, err = next(t, repo)
	require.NoError(t, err)
	require.Equal(t, []string{"a v0.1.1 patch"}, all)
	require.Equal(t, []string{"a/v0.1.1"}, publish(t, repo))
	require.Contains(t, git(t, repo, "show", "main:b/go.mod"), "example.test/a v0.1.0", "b needs no more")
	change(t, repo, map[string]string{"b/cmd/b/x.go": "package main\n", "b/CHANGELOG.md": log("Added")})
	require.Equal(t, []string{"b/v0.2.0"}, publish(t, repo))
}

// The step is at least that which the interface shows, and whoever requires a module that takes something away follows.
func TestTheInterfaceAndTheChangelogAgree(t *testing.T) {
	repo := releasedOnce(t)
	change(t, repo, map[string]string{
		"a/a.go": aMore, "a/CHANGELOG.md": log("Fixed"), "docs/api/a.txt": "a: const Limit untyped int = 3\na: const More untyped int = 4\n",
	})
	_, err := next(t, repo)
	require.ErrorContains(t, err, "a/CHANGELOG.md says a patch step, and the interface shows a minor one: add \"### Added\" for\n\ta: const More")
	change(t, repo, map[string]string{"a/CHANGELOG.md": log("Added")})
	all, err := next(t, repo)
	require.NoError(t, err)
	require.Equal(t, []string{"a v0.2.0 minor"}, all)
	change(t, repo, map[string]string{"docs/api/a.txt": "a: const More untyped int = 4\n"})
	_, err = next(t, repo)
	require.ErrorContains(t, err, "the interface shows a breaking one: add \"### Removed\"")
	change(t, repo, map[string]string{"a/CHANGELOG.md": log("Removed")})
	all, err = next(t, repo)
	require.NoError(t, err)
	require.Equal(t, []string{"a v0.2.0 breaking", "b v0.1.1 patch"}, all)
	publish(t, repo)
	require.Contains(t, git(t, repo, "show", "b/v0.1.1:b/go.mod"), "example.test/a v0.2.0")
	require.Contains(t, git(t, repo, "show", "b/v0.1.1:b/CHANGELOG.md"), "- Requires a v0.2.0.")
}

func TestAChangedModuleHasAnEntry(t *testing.T) {
	repo := releasedOnce(t)
	change(t, repo, map[string]string{"a/a.go": aMore})
	_, err := next(t, repo)
	require.ErrorContains(t, err, "a: 1 files have changed since v0.1.0, and its CHANGELOG.md says nothing under \"Unreleased\"")
}

// What a module needs and is not released yet is pending: both are in the next release. Before it, the requirement is
// too low; one that is raised without need is too high.
func TestRequirementsAreTheLowestThatWork(t *testing.T) {
	repo := releasedOnce(t)
	against := func(dir string) error {
		tree, err := release.Load(repo, without())
		require.NoError(t, err)
		at := slices.IndexFunc(tree.Modules, func(m *release.Module) bool { return m.Dir == dir })
		return tree.Against(t.Context(), tree.Modules[at], t.TempDir())
	}
	require.NoError(t, against("b"))
	change(t, repo, map[string]string{
		"a/a.go": aMore, "a/CHANGELOG.md": log("Added"), "b/cmd/b/b.go": bMore, "b/CHANGELOG.md": log("Fixed"),
	})
	require.ErrorContains(t, against("b"), "b does not pass with the versions that it requires: require the one that has what it uses, or mark it // pending")
	change(t, repo, map[string]string{"b/go.mod": bRequires("v0.1.0 // pending: More")})
	require.NoError(t, against("b"))
	require.Equal(t, []string{"a/v0.2.0", "b/v0.1.1"}, publish(t, repo))
	gomod := git(t, repo, "show", "main:b/go.mod")
	require.Contains(t, gomod, "example.test/a v0.2.0\n")
	require.NoError(t, against("b"))

	change(t, repo, map[string]string{"b/cmd/b/b.go": strings.ReplaceAll(bMore, "More", "Limit"), "b/CHANGELOG.md": log("Fixed")})
	require.ErrorContains(t, against("b"), "b requires example.test/a@v0.2.0, and passes with v0.1.0: require that")
	change(t, repo, map[string]string{"b/go.mod": bRequires("v0.2.0 // needs the cure of a race")})
	require.NoError(t, against("b"))
	change(t, repo, map[string]string{"b/go.mod": bRequires("v0.1.0")})
	require.NoError(t, against("b"))
}

// A user mixes a new version of one module with an old one of another.
func TestVersionsMix(t *testing.T) {
	repo := releasedOnce(t)
	change(t, repo, map[string]string{"a/a.go": strings.ReplaceAll(maxA, "3", "5"), "a/CHANGELOG.md": log("Fixed")})
	r, p := cut(t, repo, false), proxy(t)
	require.NoError(t, r.Verify(t.Context(), p))
	t.Setenv("GOPROXY", "off")
	env, err := p.Env(t.Context(), "example.test")
	require.NoError(t, err)
	dir := t.TempDir()
	write(t, dir, "go.mod", "module example.test/user"+goLine+"\nrequire example.test/a v0.1.1\n")
	write(t, dir, "user.go", "package main\n\nimport \"example.test/a\"\n\nfunc main() { println(a.Limit) }\n")
	require.Equal(t, "5\n", goRun(t, dir, env))
	require.Equal(t, []string{"a/v0.1.1"}, r.Tags)
}

func TestRequirementsThatNobodyCanGet(t *testing.T) {
	repo := releasedOnce(t)
	for version, want := range map[string]string{
		"v0.7.0":            "b/go.mod requires example.test/a@v0.7.0, which was never released: it has v0.1.0",
		"v0.1.0 // pending": "b/go.mod: example.test/a is pending, and nothing is new in it: require v0.1.0",
	} {
		files := map[string]string{"b/go.mod": bRequires(version), "b/CHANGELOG.md": log("Fixed")}
		change(t, repo, files)
		_, err := next(t, repo)
		require.ErrorContains(t, err, want)
	}
}
