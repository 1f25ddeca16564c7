// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// Optional interfaces are those that the code asks a value for, by an assertion. [optionalInterfaces] demands that
// each one of the public packages is checked by package optional of machine somewhere, or stands in
// [uncheckedInterfaces].

// uncheckedInterfaces returns the optional interfaces that package optional does not check, each with the reason.
func uncheckedInterfaces() map[string]string {
	return map[string]string{
		"ddata/crdt.Differ":              "crdt imports nothing of the tree; crdttest holds a type to it",
		"ddata/crdt.Replacer":            "it has a method without parameters and results",
		"ddata/crdt.Retirer":             "as crdt.Differ",
		"ddata/crdt.Sizer":               "as crdt.Differ",
		"sharding.Entity":                "every entity has it: the assertion only brings the type of the messages back",
		"transport/session.Acknowledger": "connections are made by transports, which transporttest holds to it",
		"transport/session.Certified":    "as session.Acknowledger",
	}
}

// optionalInterfaces finds assertions to public interfaces that nobody checks.
func optionalInterfaces(r *Repository) []Fault {
	declared, checked := interfaces(r), map[string]bool{}
	for _, f := range r.Files {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if i, ok := n.(*ast.IndexExpr); ok && !f.Test {
				if of, ok := i.X.(*ast.SelectorExpr); ok && of.Sel.Name == "TypeFor" {
					checked[typeName(f, i.Index)] = true
				}
			}
			return true
		})
	}
	excuses := uncheckedInterfaces()
	var faults []Fault
	for _, f := range r.Files {
		if f.ForTests() || f.Generated {
			continue
		}
		for _, t := range asserted(f) {
			name := typeName(f, t)
			if _, excused := excuses[name]; declared[name] && !checked[name] && !excused {
				faults = append(faults, r.at(t.Pos(), "%s is optional, and a value with a method of it and another signature is not refused: check it by package optional", name))
			}
		}
	}
	return faults
}

// interfaces returns the interfaces that public packages declare, by directory and name.
func interfaces(r *Repository) map[string]bool {
	found := map[string]bool{}
	for _, f := range r.Files {
		if f.Test || slices.Contains(strings.Split(f.Dir(), "/"), "internal") {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if t, ok := n.(*ast.TypeSpec); ok && t.Name.IsExported() {
				_, is := t.Type.(*ast.InterfaceType)
				found[f.Dir()+"."+t.Name.Name] = is
			}
			return true
		})
	}
	return found
}

// asserted returns the types of the assertions and type switches of a file.
func asserted(f *File) (types []ast.Expr) {
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeAssertExpr:
			if n.Type != nil {
				types = append(types, n.Type)
			}
		case *ast.TypeSwitchStmt:
			for _, c := range n.Body.List {
				types = append(types, c.(*ast.CaseClause).List...) // Nothing else is in a switch.
			}
		}
		return true
	})
	return types
}

// prefix returns what the import paths of the tree begin with.
func (f *File) prefix() string { return strings.TrimSuffix(f.Module.Path, f.Module.Dir) }

// typeName returns the directory and the name of a type of the tree, without its parameters; empty for others.
func typeName(f *File, t ast.Expr) string {
	switch t := t.(type) {
	case *ast.IndexExpr:
		return typeName(f, t.X)
	case *ast.Ident:
		return f.Dir() + "." + t.Name
	case *ast.SelectorExpr:
		of, ok := t.X.(*ast.Ident)
		if !ok {
			return ""
		}
		for _, spec := range f.Syntax.Imports {
			imported := strings.Trim(spec.Path.Value, "`\"")
			local := path.Base(imported)
			if spec.Name != nil {
				local = spec.Name.Name
			}
			if local == of.Name {
				return strings.TrimPrefix(imported, f.prefix()) + "." + t.Sel.Name
			}
		}
	}
	return ""
}
