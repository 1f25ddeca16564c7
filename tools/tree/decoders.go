// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"go/ast"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// What others send is decoded by functions that take bytes and make something of them. They are found by their names,
// by their parameters and results, and by what they call (isDecoder). Each is held to what it may allocate by a test of
// its package that calls package frugal with it, or with what calls it; or it is named in Repository.Unmeasured with a
// reason.

// frugalDir is the package by which decoders are measured.
const frugalDir = "internal/patience/frugal"

// decoderName matches the names of functions that decode.
var decoderName = regexp.MustCompile(`^(D|d)ecode|^(P|p)arse|^(U|u)nmarshal|^(R|r)ead[B-Z]|^(S|s)can([A-Z]|$)|^(R|r)estore([A-Z]|$)|FromProto$`)

// packageCode are the functions of a package, by name.
type packageCode struct {
	decoders map[string]*ast.FuncDecl
	calls    map[string][]string // What each function names.
	measured []string            // What tests that measure name.
}

func decoders(r *Repository) []Fault {
	packages := map[string]*packageCode{}
	for _, f := range r.Files {
		code := packages[f.Dir()]
		if code == nil {
			code = &packageCode{decoders: map[string]*ast.FuncDecl{}, calls: map[string][]string{}}
			packages[f.Dir()] = code
		}
		code.add(f)
	}
	var faults []Fault
	needed := map[string]bool{}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		code := packages[dir]
		covered := code.reached()
		for _, name := range slices.Sorted(maps.Keys(code.decoders)) {
			if covered[name] {
				continue
			}
			if by := reasonOf(r.Unmeasured, dir, name); by != "" {
				needed[by] = true
				continue
			}
			faults = append(faults, r.at(code.decoders[name].Pos(), "%s decodes, and no test measures what it allocates: call %s, or name it in unmeasured.go", name, frugalDir))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Unmeasured)) {
		if !needed[name] {
			faults = append(faults, Fault{File: "tools/tree/unmeasured.go", Text: name + " has no decoder that is not measured: take it off the list"})
		}
	}
	return faults
}

// reasonOf returns the entry of the list for a function: its own, that of its package, or that of all packages within a
// directory, which ends with "/...".
func reasonOf(reasons map[string]string, dir, name string) string {
	for _, entry := range []string{dir + " " + name, dir} {
		if reasons[entry] != "" {
			return entry
		}
	}
	for above := dir; ; {
		if reasons[above+"/..."] != "" {
			return above + "/..."
		}
		i := strings.LastIndexByte(above, '/')
		if i < 0 {
			return ""
		}
		above = above[:i]
	}
}

func (c *packageCode) add(f *File) {
	measures := f.Test && slices.ContainsFunc([]string{"frugal.Require", "frugal.RequireInputs", "frugal.RequireWithin", "frugal.RequireFactor", "wiretest.Frugal", "wiretest.FrugalTrial"}, func(name string) bool { return calling(f.Syntax, name) })
	if measures {
		c.measured = append(c.measured, named(f.Syntax)...)
	}
	if f.ForTests() || f.Generated {
		return
	}
	for _, decl := range f.Syntax.Decls {
		if values, ok := decl.(*ast.GenDecl); ok {
			c.addValues(values) // A table may name functions.
		}
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		name := fn.Name.Name
		c.calls[name] = append(c.calls[name], named(fn.Body)...)
		if isDecoder(fn) {
			c.decoders[name] = fn
		}
	}
}

func (c *packageCode) addValues(values *ast.GenDecl) {
	for _, spec := range values.Specs {
		if value, ok := spec.(*ast.ValueSpec); ok {
			for _, name := range value.Names {
				c.calls[name.Name] = append(c.calls[name.Name], named(value)...)
			}
		}
	}
}

// isDecoder reports whether a function makes something of bytes: it is named so, it returns what is larger than a
// number and no bytes, or it has another one decode.
func isDecoder(fn *ast.FuncDecl) bool {
	takes := takesBytes(fn)
	return takes && (decoderName.MatchString(fn.Name.Name) || makes(fn)) || strings.HasSuffix(fn.Name.Name, "FromProto") || unmarshals(fn.Body)
}

// unmarshals reports whether code calls what decodes for others: a function Unmarshal, or a new decoder of a stream.
func unmarshals(n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if fn, ok := call.Fun.(*ast.SelectorExpr); ok {
				found = found || strings.HasPrefix(fn.Sel.Name, "Unmarshal") || fn.Sel.Name == "NewDecoder"
			}
		}
		return !found
	})
	return found
}

// makes reports whether a result of a function is more than numbers, texts, bytes and errors.
func makes(fn *ast.FuncDecl) bool {
	if fn.Type.Results == nil {
		return false
	}
	return slices.ContainsFunc(fn.Type.Results.List, func(p *ast.Field) bool {
		switch t := p.Type.(type) {
		case *ast.ArrayType:
			return !isByte(t.Elt)
		case *ast.Ident:
			return t.Name == "any" || t.Obj != nil && t.Obj.Kind == ast.Typ && isStruct(t.Obj.Decl) || t.Obj == nil && !predeclared(t.Name)
		case *ast.SelectorExpr:
			return t.Sel.Name != "Duration"
		case *ast.StarExpr, *ast.MapType, *ast.IndexExpr, *ast.InterfaceType, *ast.StructType:
			return true
		}
		return false
	})
}

func predeclared(name string) bool { return types.Universe.Lookup(name) != nil }

// isStruct reports whether a declaration of a type is more than a name for a number or a text.
func isStruct(decl any) bool {
	spec, ok := decl.(*ast.TypeSpec)
	if !ok {
		return true
	}
	underlying, ok := spec.Type.(*ast.Ident)
	return !ok || !predeclared(underlying.Name)
}

// reached are the functions that tests measure, by themselves or through others.
func (c *packageCode) reached() map[string]bool {
	seen := map[string]bool{}
	queue := c.measured
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if !seen[name] {
			seen[name] = true
			queue = append(queue, c.calls[name]...)
		}
	}
	return seen
}

// named are all names in a piece of code but those of parameters, of variables, and of what Go has itself.
func named(n ast.Node) (all []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			all = append(append(all, named(n.X)...), n.Sel.Name)
			return false
		case *ast.Ident:
			if !isLocal(n) && !predeclared(n.Name) {
				all = append(all, n.Name)
			}
		}
		return true
	})
	return all
}

func isLocal(id *ast.Ident) bool {
	if id.Obj == nil {
		return false
	}
	switch id.Obj.Decl.(type) {
	case *ast.Field, *ast.AssignStmt:
		return true
	}
	return false
}

// takesBytes reports whether a parameter of a function is bytes, or is read.
func takesBytes(fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(fn.Type.Params.List, func(p *ast.Field) bool {
		switch t := p.Type.(type) {
		case *ast.ArrayType:
			return t.Len == nil && isByte(t.Elt)
		case *ast.SelectorExpr:
			return slices.Contains([]string{"Reader", "BufferSlice", "RawMessage"}, t.Sel.Name)
		}
		return false
	})
}

// isByte reports whether a type is byte, or bytes again.
func isByte(t ast.Expr) bool {
	if list, ok := t.(*ast.ArrayType); ok {
		t = list.Elt
	}
	name, ok := t.(*ast.Ident)
	return ok && name.Name == "byte"
}
