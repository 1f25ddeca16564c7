// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// programModules are modules that are run or copied, and not imported.
func programModules() []string {
	return []string{"bench", "examples", "examples/plugins", "internal/acceptance", "tools"}
}

// examples demands an example of each package that a user imports: a function in a test
// file that go doc takes for an example. For a suite, whose caller has a *testing.T, an
// example that is compiled but not run is enough.
//
// Left out are commands, internal packages, generated packages (except for their doc.go),
// and modules of programs.
func examples(r *Repository) []Fault {
	var dirs []string
	shown := map[string]bool{}
	for _, f := range r.Files {
		dir := f.Dir()
		if !isPublic(f) {
			continue
		}
		if !f.Test && !f.Generated && path.Base(f.Name) != "doc.go" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		shown[dir] = shown[dir] || f.Test && hasExample(f)
	}
	var faults []Fault
	for _, dir := range dirs {
		if !shown[dir] {
			faults = append(faults, Fault{File: dir, Text: "the package is public and has no Example"})
		}
	}
	return faults
}

// isPublic reports whether users import the package of a file.
func isPublic(f *File) bool {
	if f.Module == nil || f.Syntax.Name.Name == "main" || slices.Contains(programModules(), f.Module.Dir) {
		return false
	}
	return !slices.Contains(strings.Split(f.Dir(), "/"), "internal")
}

// hasExample reports whether a test file has an example: a function without
// parameters whose name is Example, or begins so and goes on with a capital letter or
// an underscore.
func hasExample(f *File) bool {
	return slices.ContainsFunc(f.Syntax.Decls, func(decl ast.Decl) bool {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || fn.Type.Params.NumFields() > 0 {
			return false
		}
		rest, found := strings.CutPrefix(fn.Name.Name, "Example")
		return found && (rest == "" || rest[0] == '_' || ast.IsExported(rest))
	})
}
