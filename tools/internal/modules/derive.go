// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
)

// What follows from the imports: a module requires the siblings that its files import, and replaces these and all that
// they require in turn; the table of modules lists the former.

// notReleased is the version at which a module requires a sibling that has no release yet.
const notReleased = "v0.0.0"

// Derive completes the go.mod of each module and the table of modules. A requirement that is there keeps its version; a
// new one is of what is in the tree, pending. Others than siblings are left to go mod tidy.
func Derive(root string) error {
	all, err := load(root)
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := m.require(root, all); err != nil {
			return err
		}
	}
	for _, m := range all {
		if err := m.complete(root, all); err != nil {
			return err
		}
	}
	return edit(filepath.Join(root, architecture), func(text string) (string, error) { return column(text, all) })
}

// module is a module of the workspace, by its directory.
type module struct {
	dir string
	mod *modfile.File
}

// load reads the modules that go.work names.
func load(root string) (map[string]*module, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return nil, err
	}
	all := map[string]*module{}
	for _, u := range work.Use {
		dir := path.Clean(u.Path)
		name := filepath.Join(root, dir, "go.mod")
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		mod, err := modfile.Parse(name, data, nil)
		if err != nil {
			return nil, err
		}
		all[dir] = &module{dir, mod}
	}
	return all, nil
}

// owner returns the directory of the module that has a package of the repository; empty for a package of others.
func owner(all map[string]*module, importPath string) string {
	rest, ours := strings.CutPrefix(importPath, Prefix)
	if !ours {
		return ""
	}
	for dir := rest; dir != "."; dir = path.Dir(dir) {
		if all[dir] != nil {
			return dir
		}
	}
	return ""
}

// require adds a requirement of each sibling that the files of the module import.
func (m *module) require(root string, all map[string]*module) error {
	imported := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, m.dir), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if nested := err == nil && name != filepath.Join(root, m.dir); nested || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if dir := owner(all, p); dir != "" && dir != m.dir {
				imported[dir] = true
			}
		}
		return nil
	})
	for dir := range imported {
		at := slices.IndexFunc(m.mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == Prefix+dir })
		switch {
		case at < 0:
			err = errors.Join(err, m.mod.AddRequire(Prefix+dir, notReleased))
		case m.mod.Require[at].Indirect:
			m.mod.AddNewRequire(Prefix+dir, m.mod.Require[at].Mod.Version, false)
		}
	}
	return err
}

// complete replaces all siblings in the graph of the module by their directories, and writes its go.mod.
func (m *module) complete(root string, all map[string]*module) error {
	reached, open := map[string]bool{}, []*module{m}
	for len(open) > 0 {
		next := open[0]
		open = open[1:]
		for _, r := range next.mod.Require {
			dir, ours := strings.CutPrefix(r.Mod.Path, Prefix)
			if ours && all[dir] != nil && !reached[dir] {
				reached[dir] = true
				open = append(open, all[dir])
			}
		}
	}
	up := strings.Repeat("../", strings.Count(m.dir, "/")+1)
	for _, dir := range slices.Sorted(maps.Keys(reached)) {
		if slices.ContainsFunc(m.mod.Replace, func(r *modfile.Replace) bool { return r.Old.Path == Prefix+dir }) {
			continue
		}
		if err := m.mod.AddReplace(Prefix+dir, "", up+dir, ""); err != nil {
			return err
		}
	}
	m.mod.SortBlocks()
	m.mod.Cleanup()
	text, err := m.mod.Format()
	if err != nil {
		return err
	}
	return edit(filepath.Join(root, m.dir, "go.mod"), func(string) (string, error) { return string(text), nil })
}

// column writes the last column of the table of modules.
func column(text string, all map[string]*module) (string, error) {
	lines := strings.Split(text, "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "| module | ") })
	if at < 0 {
		return "", fmt.Errorf("no table of modules")
	}
	for i := at + 2; strings.HasPrefix(lines[i], "|"); i++ {
		m := all[cell(lines[i], 0)]
		if m == nil {
			continue
		}
		var siblings []string
		for _, r := range m.mod.Require {
			if dir, ours := strings.CutPrefix(r.Mod.Path, Prefix); ours && !r.Indirect && !strings.HasPrefix(dir, "internal/") {
				siblings = append(siblings, dir)
			}
		}
		slices.Sort(siblings)
		if len(siblings) == 0 {
			siblings = []string{"nothing"}
		}
		lines[i] = fmt.Sprintf("| %s | %s | %s |", cell(lines[i], 0), cell(lines[i], 1), strings.Join(siblings, ", "))
	}
	return strings.Join(lines, "\n"), nil
}
