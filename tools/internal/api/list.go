// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// lister writes the lines of one package.
type lister struct {
	dir   string
	print printer
	kept  func(path string) bool // whether the package there keeps a promise of its own
	lines []string
}

// list returns one line for each thing that a package declares, sorted.
func list(dir string, pkg *types.Package, prefix string, kept func(path string) bool) []string {
	l := &lister{dir: dir, print: printer{home: pkg, prefix: prefix}, kept: kept}
	scope := pkg.Scope()
	for _, name := range scope.Names() {
		if object := scope.Lookup(name); object.Exported() {
			l.object(object)
		}
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines)
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, l.dir+": "+fmt.Sprintf(format, args...))
}

func (l *lister) object(object types.Object) {
	switch o := object.(type) {
	case *types.Const:
		l.add("const %s %s = %s", o.Name(), l.print.typ(o.Type()), o.Val().ExactString()) // String would shorten the value.
	case *types.Var:
		l.add("var %s %s", o.Name(), l.print.typ(o.Type()))
	case *types.Func:
		l.add("func %s%s", o.Name(), l.print.signature(o.Signature()))
	case *types.TypeName:
		l.declared(o)
	}
}

// declared lists a type. An alias of a type that is promised elsewhere is one line; for
// any other type the alias makes the promise, so the members are listed here.
func (l *lister) declared(o *types.TypeName) {
	switch t := o.Type().(type) {
	case *types.Alias:
		l.add("type %s%s = %s", o.Name(), l.print.params(t.TypeParams()), l.print.typ(t.Rhs()))
		named, ok := types.Unalias(t).(*types.Named)
		if ok && named.Obj().Pkg() != nil && !l.kept(named.Obj().Pkg().Path()) {
			l.members(o.Name(), named)
		}
	case *types.Named:
		l.members(o.Name(), t)
	}
}

func (l *lister) members(name string, t *types.Named) {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		l.structure(name, t, u)
	case *types.Interface:
		l.contract(name, t, u)
		return // The type of an interface names its methods.
	default:
		l.add("type %s%s %s", name, l.print.params(t.TypeParams()), l.print.typ(u))
	}
	l.methods(name, t)
}

func (l *lister) structure(name string, t *types.Named, s *types.Struct) {
	l.add("type %s%s struct", name, l.print.params(t.TypeParams()))
	if t.TypeParams().Len() == 0 && types.Comparable(t) {
		l.add("type %s struct, comparable", name)
	}
	for field := range s.Fields() {
		switch {
		case !field.Exported():
		case field.Embedded():
			l.add("type %s struct, embeds %s", name, l.print.typ(field.Type()))
		default:
			l.add("type %s struct, %s %s", name, field.Name(), l.print.typ(field.Type()))
		}
	}
}

// contract lists an interface. Others can implement the interface unless it has a method
// that they cannot name; a new method then breaks them, so the first line has all
// methods.
func (l *lister) contract(name string, t *types.Named, i *types.Interface) {
	var names []string
	sealed := false
	for method := range i.Methods() {
		if !method.Exported() {
			sealed = true
			continue
		}
		names = append(names, method.Name())
		l.add("type %s interface, %s%s", name, method.Name(), l.print.signature(method.Signature()))
	}
	slices.Sort(names)
	if sealed {
		names = []string{"sealed"}
	}
	for embedded := range i.EmbeddedTypes() {
		if !types.IsInterface(embedded) {
			names = append(names, l.print.typ(embedded))
		}
	}
	l.add("type %s%s interface { %s }", name, l.print.params(t.TypeParams()), strings.Join(names, ", "))
}

// methods lists the methods of the pointer type, which are all, promoted ones included.
func (l *lister) methods(name string, t *types.Named) {
	value := types.NewMethodSet(t)
	for selection := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		method, ok := selection.Obj().(*types.Func)
		if !ok || !method.Exported() {
			continue
		}
		receiver := "*" + name
		if value.Lookup(method.Pkg(), method.Name()) != nil {
			receiver = name
		}
		signature, ok := selection.Type().(*types.Signature)
		if ok {
			l.add("method (%s) %s%s", receiver, method.Name(), l.print.signature(signature))
		}
	}
}
