// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/release"
)

const requiresB = "\nrequire example.test/b v0.0.0\n\nreplace example.test/b => ../b\n"

func check(t *testing.T, repo string) error {
	t.Helper()
	tree, err := release.Load(repo, without())
	require.NoError(t, err)
	_, err = tree.Check(t.Context())
	return err
}

func TestCleanTreeMayBeReleased(t *testing.T) {
	require.NoError(t, check(t, repository(t, nil)))
}

func TestModulesInACircleHaveNoOrder(t *testing.T) {
	_, err := release.Load(repository(t, map[string]string{"a/go.mod": "module example.test/a" + goLine + requiresB}), without())
	require.ErrorContains(t, err, "a requires b requires a")
}

func TestModulesWithoutReleasesExist(t *testing.T) {
	_, err := release.Load(repository(t, nil), map[string]string{"copies": "x", "lost": "because"})
	require.ErrorContains(t, err, "lost is listed as a module without releases (because)")
}

// Each fault alone forbids the release of a tree that may be released without it.
func TestPlantedFaultsForbidARelease(t *testing.T) {
	requiresCopies := "\nrequire example.test/copies v0.0.0\n\nreplace example.test/copies => ../copies\n"
	for name, c := range map[string]struct{ file, text, want string }{
		"a changelog is silent":               {"b/CHANGELOG.md", "# Changelog\n\n## v0.0.1 - 2026-01-01\n\n- Older.\n", "b: was never released, and its CHANGELOG.md says nothing"},
		"a changelog has only headings":       {"a/CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n### Added\n\n## v0.1.0\n\n- Older.\n", "a: was never released, and its CHANGELOG.md says nothing"},
		"the root has no changelog":           {"CHANGELOG.md", "", "CHANGELOG.md: no such file"},
		"a module needs one without releases": {"a/go.mod", "module example.test/a" + goLine + requiresCopies, "a requires example.test/copies, which gets no release"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, check(t, repository(t, map[string]string{c.file: c.text})), c.want)
		})
	}
}

func TestReleaseIsACommit(t *testing.T) {
	repo := repository(t, nil)
	write(t, repo, "a/a.go", "package a\n")
	require.ErrorContains(t, check(t, repo), "M a/a.go")
}

// Each fault is planted into the tag of module b, in a release that verifies without it.
func TestPlantedFaultsOfTagsAreFound(t *testing.T) {
	const gomod = "module example.test/b" + goLine + "\nrequire example.test/a v0.3.0\n"
	for name, c := range map[string]struct{ file, text, want string }{
		"a replace survives":       {"b/go.mod", gomod + "\nreplace example.test/a => ../a\n", "replaces example.test/a"},
		"a replace of a stranger":  {"b/go.mod", gomod + "\nreplace example.com/x => example.com/y v1.0.0\n", "replaces example.com/x"},
		"a sibling never released": {"b/go.mod", "module example.test/b" + goLine + "\nrequire example.test/a v0.0.0\n", "requires example.test/a@v0.0.0, which is neither in this release nor in an earlier one"},
		"a module without release": {"b/go.mod", gomod + "\nrequire example.test/copies v0.3.0\n", "requires example.test/copies, which gets no release"},
		"a sum is of another tree": {"b/go.sum", "example.test/a v0.3.0 h1:AAAA=\n", "go.sum has h1:AAAA= for example.test/a v0.3.0"},
		"a licence is missing":     {"b/LICENSE", "", "no LICENSE"},
	} {
		t.Run(name, func(t *testing.T) {
			r := cut(t, repository(t, nil), true)
			require.NoError(t, r.Verify(t.Context(), proxy(t)))
			if c.text == "" {
				git(t, r.Clone, "rm", "-q", c.file)
			} else {
				write(t, r.Clone, c.file, c.text)
			}
			git(t, r.Clone, "commit", "-qam", "plant")
			git(t, r.Clone, "tag", "-f", "b/v0.3.0")
			err := r.Verify(t.Context(), proxy(t))
			require.ErrorContains(t, err, "tag b/v0.3.0")
			require.ErrorContains(t, err, c.want)
		})
	}
}
