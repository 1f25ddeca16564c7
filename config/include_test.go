// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config"
)

// Files that include others: which values win, where faults are, and what cannot be
// included. Then come bounds, links as container platforms make them, text that is no file,
// and reloads.

// tree writes files into a new directory and returns it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func TestIncludedFilesLieUnderTheFileThatIncludesThem(t *testing.T) {
	dir := tree(t, map[string]string{
		"cluster.yaml":   "include: [base.yaml, sites/eu.json]\nnode: {name: top}\n",
		"base.yaml":      "node: {name: base, weight: 1, roles: [a]}\n",
		"sites/eu.json":  `{"include": ["../shared.yaml", "more.yaml"], "node": {"roles": ["eu"]}}`,
		"sites/more.yml": "",
		"sites/more.yaml": "node: {offset: 4, weight: 4}\n" +
			"plugins: {w: {path: bin/w}}\n",
		"shared.yaml": "node: {offset: 3, allow-insecure: true}\n",
	})
	top := filepath.Join(dir, "cluster.yaml")
	file, err := config.Loader{}.Load(top)
	require.NoError(t, err)
	got := defaults()
	require.NoError(t, file.Decode("", &got))
	require.Equal(t, "top", got.Node.Name)
	require.Equal(t, []string{"eu"}, got.Node.Roles)
	require.Equal(t, uint8(4), got.Node.Weight)
	require.Equal(t, int16(4), got.Node.Offset)
	require.True(t, got.Node.Insecure)
	require.Equal(t, filepath.Join(dir, "bin/w"), file.Resolve(got.Plugins["w"].Path), "relative to the first file, wherever it stands")
	require.Equal(t, []string{
		filepath.Join(dir, "base.yaml"), filepath.Join(dir, "shared.yaml"), filepath.Join(dir, "sites/more.yaml"),
		filepath.Join(dir, "sites/eu.json"), top,
	}, file.Paths())
	require.Equal(t, []string{"node", "plugins"}, file.Sections())
}

// Faults name the file and line of an included file, and come with all others.
func TestFaultsOfIncludedFilesNameThem(t *testing.T) {
	dir := tree(t, map[string]string{
		"c.yaml": "include:\n  - a.json\n  - b.yaml\nnode: {oops: 1}\n",
		"a.json": "{\n\"node\": {\n\"addrss\": \"x\"}}\n",
		"b.yaml": "node:\n  weight: 300\n",
	})
	file, err := config.Loader{}.Load(filepath.Join(dir, "c.yaml"))
	require.NoError(t, err)
	got := defaults()
	require.Equal(t, []string{
		`a.json:3: node.addrss: unknown key; did you mean "address"?`,
		`b.yaml:2: node.weight: 300 is out of range, from 0 to 255`,
		`c.yaml:4: node.oops: unknown key, known here: address, allow-insecure, limit, name, offset, roles, weight`,
	}, faults(t, file.Decode("", &got)))
}

// covers B55.
func TestEveryUnusableIncludeIsOneClearError(t *testing.T) {
	outside := write(t, "secret.yaml", "node: {name: secret}\n")
	chain := map[string]string{"c.yaml": "include: [d0.yaml]\n"}
	for i := range 10 {
		chain[fmt.Sprintf("d%d.yaml", i)] = fmt.Sprintf("include: [d%d.yaml]\n", i+1)
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"file that includes itself": {
			map[string]string{"c.yaml": "include: [c.yaml]\n"},
			[]string{"c.yaml:1: include[0]: files include one another in a circle: c.yaml -> c.yaml"},
		},
		"cycle": {
			map[string]string{
				"c.yaml":     "node: {}\ninclude: [sub/a.yaml]\n",
				"sub/a.yaml": "include: [../b.json]\n", "b.json": `{"include": ["sub/../sub/a.yaml"]}`,
			},
			[]string{"b.json:1: include[0]: files include one another in a circle: sub/a.yaml -> b.json -> sub/a.yaml"},
		},
		"chain that is too long": {chain, []string{
			"d7.yaml:1: include[0]: files include one another deeper than 8 levels: " +
				"c.yaml -> d0.yaml -> d1.yaml -> d2.yaml -> d3.yaml -> d4.yaml -> d5.yaml -> d6.yaml -> d7.yaml -> d8.yaml",
		}},
		"absent file": {map[string]string{"c.yaml": "include:\n - no.yaml\n"}, []string{"c.yaml:2: include[0]: no.yaml: no such file"}},
		"items that are no paths": {map[string]string{"c.yaml": "include: [1, '', sub, a.ini]\n", "sub/x": ""}, []string{
			"c.yaml:1: include[0]: must be the path of a file",
			"c.yaml:1: include[1]: must be the path of a file",
		}},
		"files that cannot be read": {map[string]string{"c.yaml": "include: [sub, a.ini, e.yaml]\n", "sub/x": "", "a.ini": "x", "e.yaml": ""}, []string{
			"c.yaml:1: include[0]: sub: is a directory, a file is needed",
			"c.yaml:1: include[1]: a.ini: .ini files are not supported, write YAML, TOML or JSON into a .yaml, .toml or .json file",
			"e.yaml: is empty",
		}},
		"word in place of a list":    {map[string]string{"c.yaml": "include: a.yaml\n"}, []string{"c.yaml:1: include: must be a list of files, not the text \"a.yaml\", write [base.yaml]"}},
		"nothing in place of a list": {map[string]string{"c.yaml": "include:\n"}, []string{"c.yaml:1: include: must be a list of files, not nothing, write [base.yaml]"}},
		"absolute path":              {map[string]string{"c.yaml": "include: [/etc/passwd]\n"}, []string{"c.yaml:1: include[0]: \"/etc/passwd\" is an absolute path, an included file is named relative to the file that includes it"}},
		"file outside the directory": {map[string]string{"c.yaml": "include: [../x.yaml]\n"}, []string{"c.yaml:1: include[0]: x.yaml is outside the directory of c.yaml, where included files must be"}},
		"link out of the directory":  {map[string]string{"c.yaml": "include: [link.yaml]\n"}, []string{"c.yaml:1: include[0]: link.yaml: "}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, c.files)
			require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link.yaml")))
			_, err := config.Loader{}.Load(filepath.Join(dir, "c.yaml"))
			require.Error(t, err)
			got := strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")
			got = strings.ReplaceAll(got, filepath.Dir(dir)+string(filepath.Separator), "")
			lines := strings.Split(got, "\n")
			require.Len(t, lines, len(c.want), got)
			for i, want := range c.want {
				require.True(t, strings.HasPrefix(lines[i], want), "%s\n%s", lines[i], want)
			}
			require.NotContains(t, err.Error(), "secret\n")
		})
	}
}

// Files of which each includes the next one twice double their number at each level.
func TestIncludesAreBounded(t *testing.T) {
	files := map[string]string{"d8.yaml": "node: {name: x}\n"}
	for i := range 8 {
		next := fmt.Sprintf("d%d.yaml", i+1)
		files[fmt.Sprintf("d%d.yaml", i)] = "include: [" + next + ", " + next + "]\n"
	}
	_, err := config.Loader{}.Load(filepath.Join(tree(t, files), "d0.yaml"))
	require.ErrorContains(t, err, "more than 100 files are included")
}

// Included files are found in a directory as container platforms mount it: each name is a
// link into a directory that is replaced as a whole. covers F55.
func TestIncludesWorkThroughLinksInsideTheDirectory(t *testing.T) {
	dir := tree(t, map[string]string{
		"v1/c.yaml": "include: [a.yaml]\nnode: {name: x}\n", "v1/a.yaml": "node: {weight: 7}\n",
	})
	require.NoError(t, os.Symlink("v1", filepath.Join(dir, "..data")))
	for _, name := range []string{"c.yaml", "a.yaml"} {
		require.NoError(t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
	file, err := config.Loader{}.Load(filepath.Join(dir, "c.yaml"))
	require.NoError(t, err)
	got := defaults()
	require.NoError(t, file.Decode("", &got))
	require.Equal(t, uint8(7), got.Node.Weight)
}

func TestOnlyAFileCanInclude(t *testing.T) {
	_, err := config.Parse("c", []byte("include: [a.yaml]\n"))
	require.Equal(t, []string{"c:1: include: only a file can include files"}, faults(t, err))
	_, err = config.Parse("c.json", []byte(`{"include": [], "node": {"name": "x"}}`))
	require.NoError(t, err)
}

// A reload keeps no key that was deleted, and does not depend on the working
// directory.
func TestReloadReadsTheSameFilesAgain(t *testing.T) {
	dir := tree(t, map[string]string{"c.yaml": "include: [a.yaml]\nnode: {name: x, weight: 3}\n", "a.yaml": "node: {offset: 2}\n"})
	t.Chdir(dir)
	file, err := config.Loader{Environ: []string{"QUORATE_NODE__LIMIT=8"}}.Load("c.yaml")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "c.yaml"), []byte("node: {name: y}\n"), 0o600))
	again, err := file.Reload()
	require.NoError(t, err)
	require.Equal(t, []string{"c.yaml"}, again.Paths())
	got := defaults()
	require.NoError(t, again.Decode("", &got))
	require.Equal(t, "y", got.Node.Name)
	require.Equal(t, uint8(1), got.Node.Weight)
	require.Zero(t, got.Node.Offset)
	require.Equal(t, 8, *got.Node.Limit)
	require.NoError(t, os.Remove(filepath.Join(dir, "c.yaml")))
	_, err = file.Reload()
	require.ErrorContains(t, err, "c.yaml: no such file")
	parsed, err := config.Parse("c", []byte("node: {}\n"))
	require.NoError(t, err)
	_, err = parsed.Reload()
	require.ErrorIs(t, err, config.ErrRead)
}
