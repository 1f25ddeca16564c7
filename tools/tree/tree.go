// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/quorate/quorate/tools/internal/lanes"
)

// The tree is loaded once ([Load]): modules from go.work and their go.mod, then every Go
// file. The methods below answer what the checks ask of it.

// Fault is one breach of a rule.
type Fault struct {
	File string // relative to the root, with slashes
	Line int    // 0 for a file as a whole
	Text string // what is wrong, and what would be right
}

// String returns "file:line: text".
func (f Fault) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Text
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
}

// Module is one Go module of the tree.
type Module struct {
	Dir  string // relative to the root, with slashes
	Path string // import path
	Mod  *modfile.File
}

// File is one parsed Go file.
type File struct {
	Name      string // relative to the root, with slashes
	Module    *Module
	Source    []byte
	Syntax    *ast.File
	Generated bool
	Test      bool // _test.go
}

// Dir returns the directory of the file relative to the root.
func (f *File) Dir() string { return path.Dir(f.Name) }

// ForTests says whether the file is a test, or belongs to a package that only tests import: one whose
// name ends with "test".
func (f *File) ForTests() bool { return f.Test || strings.HasSuffix(path.Base(f.Dir()), "test") }

// Repository is the tree, as it was when it was loaded.
type Repository struct {
	Root    string
	Work    *modfile.WorkFile
	Modules []*Module // sorted by Dir
	Files   []*File   // sorted by Name
	Fset    *token.FileSet

	// Questions are the types that may be more than one concern, by their directory and name. [Load] takes the list of
	// this repository.
	Questions map[string]Question

	// Unmeasured are the decoders that no test measures, with their reasons: packages, packages with all within them
	// ("dir/..."), and single functions ("dir name"). [Load] takes the list of this repository. An entry without need is
	// a fault.
	Unmeasured map[string]string

	// Sequential are the packages that are tested without the race detector. [Load] takes
	// those of this repository.
	Sequential []string
}

// Load reads the tree at root. Directories that begin with a dot or an
// underscore, testdata, modules below a directory named internal at the root
// that go.work does not name (the pinned tools, which are not shipped), and [lanes.Apart] are left out.
func Load(root string) (*Repository, error) {
	r := &Repository{Root: root, Fset: token.NewFileSet(), Questions: questions(), Unmeasured: unmeasured(), Sequential: lanes.Sequential()}
	data, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, err
	}
	if r.Work, err = modfile.ParseWork("go.work", data, nil); err != nil {
		return nil, err
	}
	var sources []string
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(name, root), string(filepath.Separator)))
		switch base := entry.Name(); {
		case entry.IsDir() && rel != "" && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "node_modules"),
			entry.IsDir() && (rel == "bin" || path.Dir(rel) == "internal" && !r.uses(rel) || slices.Contains(lanes.Apart(), rel)):
			return filepath.SkipDir
		case base == "go.mod":
			return r.addModule(rel)
		case !entry.IsDir() && strings.HasSuffix(base, ".go"):
			sources = append(sources, rel)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(r.Modules, func(a, b *Module) int { return cmp.Compare(a.Dir, b.Dir) })
	slices.Sort(sources)
	for _, name := range sources {
		if err := r.addFile(name); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// uses says whether go.work names a directory.
func (r *Repository) uses(dir string) bool {
	return slices.ContainsFunc(r.Work.Use, func(use *modfile.Use) bool { return path.Clean(use.Path) == dir })
}

func (r *Repository) addModule(name string) error {
	data, err := os.ReadFile(filepath.Join(r.Root, name))
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(name, data, nil)
	if err != nil {
		return err
	}
	if mod.Module == nil {
		return fmt.Errorf("%s: no module line", name)
	}
	r.Modules = append(r.Modules, &Module{Dir: path.Dir(name), Path: mod.Module.Mod.Path, Mod: mod})
	return nil
}

func (r *Repository) addFile(name string) error {
	source, err := os.ReadFile(filepath.Join(r.Root, name))
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(r.Fset, name, source, parser.ParseComments)
	if err != nil {
		return err
	}
	r.Files = append(r.Files, &File{
		Name: name, Module: r.moduleOfDir(path.Dir(name)), Source: source, Syntax: syntax,
		Generated: ast.IsGenerated(syntax), Test: strings.HasSuffix(name, "_test.go"),
	})
	return nil
}

// moduleOfDir returns the innermost module that holds a directory, or nil.
func (r *Repository) moduleOfDir(dir string) *Module {
	return r.innermost(dir, func(m *Module) string { return m.Dir })
}

// moduleOfImport returns the module of this tree that an import path belongs to, nil for
// all other paths.
func (r *Repository) moduleOfImport(imported string) *Module {
	return r.innermost(imported, func(m *Module) string { return m.Path })
}

// innermost returns the module with the longest root at or above a path, or nil.
func (r *Repository) innermost(path string, root func(*Module) string) *Module {
	var best *Module
	for _, m := range r.Modules {
		holds := path == root(m) || strings.HasPrefix(path, root(m)+"/")
		if holds && (best == nil || len(root(m)) > len(root(best))) {
			best = m
		}
	}
	return best
}

// at makes a fault at a position.
func (r *Repository) at(pos token.Pos, format string, args ...any) Fault {
	p := r.Fset.Position(pos)
	return Fault{File: p.Filename, Line: p.Line, Text: fmt.Sprintf(format, args...)}
}

// imports calls yield for each import of each file.
func (r *Repository) imports(yield func(f *File, imported string, pos token.Pos)) {
	for _, f := range r.Files {
		for _, spec := range f.Syntax.Imports {
			yield(f, strings.Trim(spec.Path.Value, "`\""), spec.Pos())
		}
	}
}
