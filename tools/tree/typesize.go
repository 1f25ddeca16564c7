// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
)

const (
	typeMethodsMax = 60
	typeFilesMax   = 6
)

// large are the types of this repository that may be larger than allowed, by their
// directory and name, with what is to be done about each. When a type has become small
// enough its entry goes: an entry that is not needed is a fault.
func large() map[string]string {
	return map[string]string{}
}

// extent is what the production code declares of a type.
type extent struct {
	methods int
	files   []string
	pos     token.Pos // Position of the first method.
}

// typeSize counts methods where they are declared: methods that a type has from an
// embedded struct are counted there.
func typeSize(r *Repository) []Fault {
	extents := map[string]*extent{}
	for _, f := range r.Files {
		if f.Test || f.Generated {
			continue
		}
		for _, decl := range f.Syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			name := f.Dir() + "." + receiverOf(fn)
			e := extents[name]
			if e == nil {
				e = &extent{pos: fn.Pos()}
				extents[name] = e
			}
			e.methods++
			if !slices.Contains(e.files, f.Name) {
				e.files = append(e.files, f.Name)
			}
		}
	}
	var faults []Fault
	for _, name := range slices.Sorted(maps.Keys(extents)) {
		e := extents[name]
		if _, excused := r.Large[name]; !excused && e.tooLarge() {
			faults = append(faults, r.at(e.pos, "%s has %d methods in %d files, %d in %d are allowed: what it does is more than one concern",
				name, e.methods, len(e.files), typeMethodsMax, typeFilesMax))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Large)) {
		if e := extents[name]; e == nil || !e.tooLarge() {
			faults = append(faults, Fault{File: "tools/tree/typesize.go", Text: name + " needs no excuse any more, take it out of the table"})
		}
	}
	return faults
}

func (e *extent) tooLarge() bool { return e.methods > typeMethodsMax || len(e.files) > typeFilesMax }

// receiverOf returns the name of the type of a method's receiver.
func receiverOf(fn *ast.FuncDecl) string { return baseName(fn.Recv.List[0].Type) }

// baseName returns the name of a type of the package itself, without a pointer and without
// type parameters; none for any other type.
func baseName(t ast.Expr) string {
	for {
		switch of := t.(type) {
		case *ast.StarExpr:
			t = of.X
		case *ast.ParenExpr:
			t = of.X
		case *ast.IndexExpr:
			t = of.X
		case *ast.IndexListExpr:
			t = of.X
		case *ast.Ident:
			return of.Name
		default:
			return ""
		}
	}
}
