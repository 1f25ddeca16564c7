// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A core is found by its path or its mark ([Repository.cores]). Its imports and calls are
// checked file by file ([corePurity]), its loops over maps with types ([coreOrder]).

const (
	coreMark      = "//quorate:core"
	unorderedMark = "//quorate:unordered "
)

// cores lists the directories of the packages that must be pure.
func (r *Repository) cores() []string {
	var dirs []string
	for _, f := range r.Files {
		if f.Test || slices.Contains(dirs, f.Dir()) {
			continue
		}
		marked := slices.ContainsFunc(f.Syntax.Comments, func(g *ast.CommentGroup) bool {
			return slices.ContainsFunc(g.List, func(c *ast.Comment) bool { return c.Text == coreMark })
		})
		if marked || slices.Contains(strings.Split(f.Dir(), "/"), "protocol") {
			dirs = append(dirs, f.Dir())
		}
	}
	return dirs
}

// coreFiles lists the production files of the cores.
func (r *Repository) coreFiles() []*File {
	dirs := r.cores()
	var files []*File
	for _, f := range r.Files {
		if !f.Test && slices.Contains(dirs, f.Dir()) {
			files = append(files, f)
		}
	}
	return files
}

func corePurity(r *Repository) []Fault {
	banned := []string{"context", "crypto/rand", "log", "log/slog", "math/rand", "net", "net/http", "os", "os/exec", "sync", "sync/atomic", "syscall"}
	clock := []string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Sleep"}
	var faults []Fault
	for _, f := range r.coreFiles() {
		for _, spec := range f.Syntax.Imports {
			if imported := strings.Trim(spec.Path.Value, "`\""); slices.Contains(banned, imported) {
				faults = append(faults, r.at(spec.Pos(), "a core imports %s", imported))
			}
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.GoStmt:
				faults = append(faults, r.at(n.Pos(), "a core starts a goroutine"))
			case *ast.SelectStmt, *ast.SendStmt:
				faults = append(faults, r.at(n.Pos(), "a core uses a channel"))
			}
			return true
		})
		for use := range calls(f, "time") {
			if slices.Contains(clock, use.Sel.Name) {
				faults = append(faults, r.at(use.Pos(), "a core reads the clock: time.%s", use.Sel.Name))
			}
		}
		for use := range calls(f, "math/rand/v2") {
			// What is left are types and constructors of sources with a seed.
			if name := use.Sel.Name; !strings.HasPrefix(name, "New") && !slices.Contains([]string{"Rand", "Source", "PCG", "ChaCha8", "Zipf"}, name) {
				faults = append(faults, r.at(use.Pos(), "a core uses the global randomness: rand.%s", name))
			}
		}
	}
	return faults
}

// coreOrder needs types, to know what is a map. The go command is asked for each
// core, in the workspace.
func coreOrder(r *Repository) ([]Fault, error) {
	var patterns []string
	for _, dir := range r.cores() {
		patterns = append(patterns, "./"+dir)
	}
	if len(patterns) == 0 {
		return nil, nil
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
		Dir:  r.Root,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	var faults []Fault
	for _, pkg := range loaded {
		if len(pkg.Errors) > 0 {
			return nil, errors.Join(asErrors(pkg.Errors)...)
		}
		for _, file := range pkg.Syntax {
			faults = append(faults, r.unordered(pkg, file)...)
		}
	}
	return faults, nil
}

func asErrors(list []packages.Error) []error {
	out := make([]error, len(list))
	for i, one := range list {
		out[i] = one
	}
	return out
}

// unordered finds the places of one file where the order of a map shows.
func (r *Repository) unordered(pkg *packages.Package, file *ast.File) []Fault {
	excused := map[int]bool{}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if strings.HasPrefix(comment.Text, unorderedMark) {
				line := pkg.Fset.Position(comment.Pos()).Line
				excused[line], excused[line+1] = true, true
			}
		}
	}
	var faults []Fault
	fault := func(pos token.Pos, text string) {
		p := pkg.Fset.Position(pos)
		if excused[p.Line] {
			return
		}
		name, err := filepath.Rel(r.Root, p.Filename)
		if err != nil {
			name = p.Filename
		}
		faults = append(faults, Fault{File: filepath.ToSlash(name), Line: p.Line, Text: fmt.Sprintf(
			"%s; sort the keys, or say on this line why the order does not matter: %sreason", text, unorderedMark)})
	}
	sorted := map[ast.Expr]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if t := pkg.TypesInfo.TypeOf(n.X); t != nil {
				if _, ok := t.Underlying().(*types.Map); ok {
					fault(n.Pos(), "a core ranges over a map")
				}
			}
		case *ast.CallExpr:
			switch callee := calleeOf(pkg.TypesInfo, n); callee {
			case "slices.Sorted", "slices.SortedFunc", "slices.SortedStableFunc":
				sorted[ast.Unparen(n.Args[0])] = true
			case "maps.Keys", "maps.Values", "maps.All":
				if !sorted[n] {
					fault(n.Pos(), "a core takes "+callee+" without sorting")
				}
			}
		}
		return true
	})
	return faults
}

// calleeOf returns "package.Function" of a call to a package's function.
func calleeOf(info *types.Info, call *ast.CallExpr) string {
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	fn, ok := info.Uses[selector.Sel].(*types.Func)
	if !ok || fn.Pkg() == nil {
		return ""
	}
	return fn.Pkg().Path() + "." + fn.Name()
}
