// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// A limit in real time turns a test red on a busy machine, so tests wait by internal/patience. The
// check walks, for each package, from its tests through the functions of its test files, leaves out
// what runs in a bubble of virtual time, and reports limits that the rest sets by itself.

// realtimeMark, at the end of a line or on the one above, says why something there is no limit of a test.
const realtimeMark = "//quorate:realtime "

// patienceDir is the package that has the waits of tests.
const patienceDir = "internal/patience"

func realtime(r *Repository) []Fault {
	packages := map[string]*testCode{}
	var dirs []string
	for _, f := range r.Files {
		if !f.ForTests() || f.Dir() == patienceDir {
			continue
		}
		code := packages[f.Dir()]
		if code == nil {
			code = &testCode{functions: map[string][]testFunction{}, virtual: map[ast.Node]bool{}, seen: map[*ast.FuncDecl]bool{}}
			packages[f.Dir()] = code
			dirs = append(dirs, f.Dir())
		}
		code.add(f)
	}
	var faults []Fault
	for _, dir := range dirs {
		faults = append(faults, packages[dir].faults(r)...)
	}
	return faults
}

// testCode is what the test files of a package declare.
type testCode struct {
	roots     []testFunction
	functions map[string][]testFunction // by name, methods too
	virtual   map[ast.Node]bool         // arguments whose code runs in a bubble
	seen      map[*ast.FuncDecl]bool
}

// testFunction is one function with its file.
type testFunction struct {
	file *File
	decl *ast.FuncDecl
}

func (c *testCode) add(f *File) {
	for _, decl := range f.Syntax.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		name := fn.Name.Name
		c.functions[name] = append(c.functions[name], testFunction{f, fn})
		isTest := slices.ContainsFunc([]string{"Test", "Fuzz", "Example"}, func(p string) bool { return strings.HasPrefix(name, p) })
		if fn.Recv == nil && f.Test && isTest || !f.Test && fn.Name.IsExported() {
			c.roots = append(c.roots, testFunction{f, fn})
		}
	}
}

// faults walks from the tests to all that they call in real time.
func (c *testCode) faults(r *Repository) []Fault {
	bubbles := map[string]bool{"synctest.Test": true}
	for name, all := range c.functions { // What hands its arguments to a bubble is one.
		if slices.ContainsFunc(all, func(f testFunction) bool { return calling(f.decl.Body, "synctest.Test") }) {
			bubbles[name] = true
		}
	}
	var faults []Fault
	queue := slices.Clone(c.roots)
	for len(queue) > 0 {
		f := queue[0]
		queue = queue[1:]
		if c.seen[f.decl] {
			continue
		}
		c.seen[f.decl] = true
		excused := marked(r, f.file, realtimeMark)
		walkReal(f.decl.Body, bubbles, func(n ast.Node) {
			switch n := n.(type) {
			case *ast.CallExpr:
				if text := ownLimit(n); text != "" && !excused[r.Fset.Position(n.Pos()).Line] {
					faults = append(faults, r.at(n.Pos(), "%s is a limit in real time: wait by %s, or say with %swhy it is none",
						text, patienceDir, realtimeMark))
				}
			case *ast.Ident:
				queue = append(queue, c.functions[n.Name]...)
			}
		})
	}
	return faults
}

// walkReal visits what does not run in a bubble.
func walkReal(root ast.Node, bubbles map[string]bool, visit func(ast.Node)) {
	ast.Inspect(root, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !isBubble(call, bubbles) {
			if n != nil {
				visit(n)
			}
			return true
		}
		visit(call)
		walkReal(call.Fun, bubbles, visit)
		return false // Its arguments run in virtual time.
	})
}

func isBubble(call *ast.CallExpr, bubbles map[string]bool) bool {
	name := calledName(call)
	_, method, qualified := strings.Cut(name, ".")
	hasFunction := slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { _, ok := arg.(*ast.FuncLit); return ok })
	return name == "synctest.Test" || hasFunction && (bubbles[name] || qualified && bubbles[method])
}

// calledName returns "f" or "x.f" for the function of a call.
func calledName(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok {
			return x.Name + "." + fun.Sel.Name
		}
		return "." + fun.Sel.Name
	}
	return ""
}

func calling(body ast.Node, name string) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && calledName(call) == name {
			found = true
		}
		return !found
	})
	return found
}

// ownLimit says which limit a call sets, or returns "".
func ownLimit(call *ast.CallExpr) string {
	name := calledName(call)
	_, method, _ := strings.Cut(name, ".")
	switch name {
	case "context.WithTimeout", "context.WithDeadline", "context.WithTimeoutCause", "time.After", "time.NewTimer", "time.Tick",
		"require.Eventually", "require.Eventuallyf", "require.EventuallyWithT", "require.Never",
		"assert.Eventually", "assert.Eventuallyf", "assert.EventuallyWithT", "assert.Never":
		return name
	}
	switch method {
	case "SetDeadline", "SetReadDeadline", "SetWriteDeadline":
		return method
	}
	return ""
}

// marked returns the lines of a file that a mark excuses: its own, and the one below.
func marked(r *Repository, f *File, mark string) map[int]bool {
	lines := map[int]bool{}
	for _, group := range f.Syntax.Comments {
		for _, comment := range group.List {
			if strings.HasPrefix(comment.Text, mark) {
				line := r.line(comment.Pos())
				lines[line], lines[line+1] = true, true
			}
		}
	}
	return lines
}

func (r *Repository) line(pos token.Pos) int { return r.Fset.Position(pos).Line }
