// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"go/types"
	"strings"
)

// printer writes types without the names of parameters, which promise nothing; packages
// of this tree are named by their directory.
type printer struct {
	home   *types.Package // Package whose own names are written without a package.
	prefix string
}

func (p printer) qualifier(other *types.Package) string {
	if other == p.home {
		return ""
	}
	return strings.TrimPrefix(other.Path(), p.prefix)
}

func (p printer) typ(t types.Type) string {
	switch t := t.(type) {
	case *types.Pointer:
		return "*" + p.typ(t.Elem())
	case *types.Slice:
		return "[]" + p.typ(t.Elem())
	case *types.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), p.typ(t.Elem()))
	case *types.Map:
		return "map[" + p.typ(t.Key()) + "]" + p.typ(t.Elem())
	case *types.Chan:
		return [...]string{types.SendRecv: "chan ", types.SendOnly: "chan<- ", types.RecvOnly: "<-chan "}[t.Dir()] + p.typ(t.Elem())
	case *types.Signature:
		return "func" + p.signature(t)
	case *types.Named:
		return p.name(t.Obj()) + p.arguments(t.TypeArgs())
	case *types.Alias:
		return p.name(t.Obj()) + p.arguments(t.TypeArgs())
	default: // Basic types, type parameters, and literals of structs and interfaces.
		return types.TypeString(t, p.qualifier)
	}
}

func (p printer) name(o *types.TypeName) string {
	if o.Pkg() == nil || p.qualifier(o.Pkg()) == "" {
		return o.Name()
	}
	return p.qualifier(o.Pkg()) + "." + o.Name()
}

func (p printer) arguments(list *types.TypeList) string {
	if list.Len() == 0 {
		return ""
	}
	var out []string
	for t := range list.Types() {
		out = append(out, p.typ(t))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func (p printer) params(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var out []string
	for param := range list.TypeParams() {
		out = append(out, param.Obj().Name()+" "+p.typ(param.Constraint()))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func (p printer) signature(s *types.Signature) string {
	var params, results []string
	for v := range s.Params().Variables() {
		params = append(params, p.typ(v.Type()))
	}
	if s.Variadic() {
		params[len(params)-1] = "..." + strings.TrimPrefix(params[len(params)-1], "[]")
	}
	for v := range s.Results().Variables() {
		results = append(results, p.typ(v.Type()))
	}
	text := p.params(s.TypeParams()) + "(" + strings.Join(params, ", ") + ")"
	switch len(results) {
	case 0:
		return text
	case 1:
		return text + " " + results[0]
	}
	return text + " (" + strings.Join(results, ", ") + ")"
}
