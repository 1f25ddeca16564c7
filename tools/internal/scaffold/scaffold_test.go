// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold_test

import (
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/tools/internal/scaffold"
)

// root is the repository.
const root = "../../.."

func project(policy plugins.Policy, language string) scaffold.Project {
	return scaffold.Project{Name: "tried", Policy: policy, Language: language, Module: "example.com/tried"}
}

// A project has no gap of a template left, and for Go the form of gofmt. Both languages have
// templates for every policy.
func TestProjectsAreComplete(t *testing.T) {
	for _, policy := range plugins.Policies() {
		for _, language := range scaffold.Languages() {
			p := project(policy, language)
			p.Release = "v1.2.3"
			files, err := p.Files()
			require.NoError(t, err)
			var names []string
			for _, f := range files {
				names = append(names, f.Name)
				text := string(f.Content)
				require.NotContains(t, text, "{{", f.Name)
				require.NotContains(t, text, "<no value>", f.Name)
				require.True(t, strings.HasSuffix(text, "\n") && !strings.HasSuffix(text, "\n\n"), "%s ends in one line end", f.Name)
				if strings.HasSuffix(f.Name, ".go") {
					formatted, err := format.Source(f.Content)
					require.NoError(t, err, f.Name)
					require.Equal(t, string(formatted), text, f.Name)
				}
			}
			require.Subset(t, names, []string{"README.md", "Makefile", ".gitignore"})
			require.True(t, slices.IsSorted(names))
			main := map[string]string{scaffold.Go: "go.mod", scaffold.Python: "proto/quorate/plugin/v1/plugin.proto"}[language]
			require.Contains(t, names, main)
		}
	}
}

// A module requires the release that wrote it, or the modules of a checkout, or what go mod tidy
// finds.
func TestModulesRequireWhatTheyAreToldTo(t *testing.T) {
	mod := func(p scaffold.Project) string {
		files, err := p.Files()
		require.NoError(t, err)
		i := slices.IndexFunc(files, func(f scaffold.File) bool { return f.Name == "go.mod" })
		return string(files[i].Content)
	}
	p := project(plugins.JoinDecider, scaffold.Go)
	require.Equal(t, "module example.com/tried\n\ngo 1.26.0\n", mod(p))
	p.Release = "v1.2.3"
	for _, module := range []string{"discovery", "plugins", "plugins/plugintest"} {
		require.Contains(t, mod(p), "\tgithub.com/quorate/quorate/"+module+" v1.2.3\n")
	}
	p.Checkout = root
	require.Contains(t, mod(p), "\tgithub.com/quorate/quorate/plugins/plugintest => "+root+"/plugins/plugintest\n")
	require.NotContains(t, mod(p), "v1.2.3")
	p.Checkout = t.TempDir()
	_, err := p.Files()
	require.ErrorContains(t, err, "is no checkout of Quorate")
}

func TestWhatIsWrongWithAProjectIsSaid(t *testing.T) {
	for _, c := range []struct {
		change func(*scaffold.Project)
		want   string
	}{
		{func(p *scaffold.Project) { p.Policy = "dawning" }, `there is no policy "dawning"; there are downing, allocation, failure-detector, join-decider, discovery`},
		{func(p *scaffold.Project) { p.Policy = "" }, `there is no policy ""`},
		{func(p *scaffold.Project) { p.Policy = "common" }, `there is no policy "common"`},
		{func(p *scaffold.Project) { p.Language = "rust" }, `there are no templates in "rust"; there are go, python`},
	} {
		p := project(plugins.Downing, scaffold.Go)
		c.change(&p)
		_, err := p.Files()
		require.ErrorContains(t, err, c.want)
	}
	for _, name := range []string{"", "-", "a-", "1a", "A", "a b", "a/b", "..", "a.b", "ä", `a"`, strings.Repeat("a", 65)} {
		require.ErrorContains(t, scaffold.CheckName(name), "is no name for a plugin", name)
	}
	for _, name := range []string{"a", "a1", "my-witness", strings.Repeat("a", 64)} {
		require.NoError(t, scaffold.CheckName(name))
	}
}

// After an error there is nothing that was not there before.
func TestAllIsWrittenOrNothing(t *testing.T) {
	files := []scaffold.File{{Name: "a.txt", Content: []byte("a\n")}, {Name: "b/c.txt", Content: []byte("c\n")}}
	parent := t.TempDir()
	path := func(parts ...string) string { return filepath.Join(append([]string{parent}, parts...)...) }
	entries := func() (names []string) {
		all, err := os.ReadDir(parent)
		require.NoError(t, err)
		for _, e := range all {
			names = append(names, e.Name())
		}
		return names
	}
	require.NoError(t, scaffold.Write(path("new"), files))
	require.NoError(t, os.Mkdir(path("empty"), 0o755))
	require.NoError(t, scaffold.Write(path("empty")+string(filepath.Separator), files))
	for _, dir := range []string{"new", "empty"} {
		text, err := os.ReadFile(path(dir, "b", "c.txt"))
		require.NoError(t, err)
		require.Equal(t, "c\n", string(text))
	}
	require.Equal(t, []string{"empty", "new"}, entries())

	require.ErrorContains(t, scaffold.Write(path("new"), files), "is not empty: name another directory")
	require.Error(t, scaffold.Write(path("new", "a.txt"), files), "a file is no directory")
	require.ErrorContains(t, scaffold.Write(path("missing", "new"), files), "cannot be made")
	require.Error(t, scaffold.Write(path("fresh"), []scaffold.File{{Name: "a"}, {Name: "a/b"}}), "a file below a file")
	require.Equal(t, []string{"empty", "new"}, entries())
}

// The example in Python is a project as it is written for its policy, but for its strategy, its
// tests and its texts. What is the same in both is kept in step by this test.
func TestTheExampleInPythonIsAProject(t *testing.T) {
	p := project(plugins.Allocation, scaffold.Python)
	p.Name = "labels"
	files, err := p.Files()
	require.NoError(t, err)
	own := []string{"README.md", "src/strategy.py", "src/about.py", "tests/test_strategy.py"}
	same := 0
	for _, f := range files {
		if slices.Contains(own, f.Name) || strings.HasPrefix(f.Name, "proto/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, "examples", "plugins", "python", filepath.FromSlash(f.Name)))
		require.NoError(t, err)
		require.Equal(t, string(f.Content), string(text), "examples/plugins/python/%s differs from the template: copy the one that is right", f.Name)
		same++
	}
	require.GreaterOrEqual(t, same, 7)
}
