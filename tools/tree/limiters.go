// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
)

// machine.LimitLog is the one limiter of logs. Another one is found by its form: a function compares the time with one
// that is stored in a field or a map and stores the time ([clocked]), and a log is written after that, or as that says
// ([limits]). The function may be split in several of one package, which hand on what was found as a number, a boolean
// or a level.

// timing is what a function does with times and logs.
type timing struct {
	decl     *ast.FuncDecl
	compares []token.Pos // Comparisons with a stored time.
	stores   bool        // A time is stored.
	logs     []*ast.CallExpr
	calls    []call
}

// call is a call of a function by its name.
type call struct {
	name string
	pos  token.Pos
}

func logLimiters(r *Repository) []Fault {
	packages := map[string][]*timing{}
	for _, f := range r.Files {
		if !isLogOfOthers(f) || f.Generated {
			continue
		}
		for _, decl := range f.Syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				packages[f.Dir()] = append(packages[f.Dir()], timingOf(fn))
			}
		}
	}
	var faults []Fault
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		byName := map[string][]*timing{}
		for _, t := range packages[dir] {
			byName[t.name()] = append(byName[t.name()], t)
		}
		clocked := clockedIn(packages[dir], byName)
		for _, t := range packages[dir] {
			if t.limits(clocked, byName) {
				faults = append(faults, r.at(t.decl.Pos(), "%s limits a log by itself: use machine.LimitLog, and machine.About for lines about one of many subjects", t.name()))
			}
		}
	}
	return faults
}

func (t *timing) name() string { return t.decl.Name.Name }

func timingOf(fn *ast.FuncDecl) *timing {
	t := &timing{decl: fn}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if slices.Contains([]token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ}, n.Op) && (elapsed(n.X) || elapsed(n.Y)) {
				t.compares = append(t.compares, n.Pos())
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				t.stores = t.stores || isStored(to) && len(n.Rhs) == len(n.Lhs) && isTime(n.Rhs[i])
			}
		case *ast.CallExpr:
			if logText(n) != nil {
				t.logs = append(t.logs, n)
			}
			switch of := n.Fun.(type) {
			case *ast.Ident:
				t.calls = append(t.calls, call{of.Name, n.Pos()})
			case *ast.SelectorExpr:
				t.calls = append(t.calls, call{of.Sel.Name, n.Pos()})
				if slices.Contains([]string{"Before", "After"}, of.Sel.Name) && len(n.Args) == 1 && (isStored(of.X) || isStored(n.Args[0])) {
					t.compares = append(t.compares, n.Pos())
				}
			}
		}
		return true
	})
	return t
}

// elapsed reports whether an expression is the time since one that is stored.
func elapsed(e ast.Expr) bool {
	c, ok := e.(*ast.CallExpr)
	if !ok || len(c.Args) != 1 {
		return false
	}
	of, ok := c.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Since", "Sub"}, of.Sel.Name) && (isStored(c.Args[0]) || isMapped(c.Args[0]))
}

// isStored reports whether an expression is a field, or an element of a field.
func isStored(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return true
	case *ast.IndexExpr:
		return isStored(e.X)
	default:
		return false
	}
}

// isMapped reports whether an expression is a variable that got its value from an element of a field.
func isMapped(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	if !ok || id.Obj == nil {
		return false
	}
	from, ok := id.Obj.Decl.(*ast.AssignStmt)
	return ok && len(from.Rhs) == 1 && isStored(from.Rhs[0])
}

// isTime reports whether an expression is the present time: time.Now() or a variable with a name for it.
func isTime(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		of, ok := e.Fun.(*ast.SelectorExpr)
		return ok && of.Sel.Name == "Now"
	case *ast.Ident:
		return e.Name == "now" || e.Name == "at"
	}
	return false
}

// clockedIn returns the names of the functions that compare and store a time, by themselves or with those that they
// call, and of those that hand on what such a function has found.
func clockedIn(code []*timing, byName map[string][]*timing) map[string]bool {
	clocked := map[string]bool{}
	for _, t := range code {
		by := func(does func(*timing) bool) bool {
			return does(t) || slices.ContainsFunc(t.calls, func(c call) bool { return slices.ContainsFunc(byName[c.name], does) })
		}
		compares := by(func(o *timing) bool { return len(o.compares) > 0 && (o == t || isVerdict(o)) })
		if compares && by(func(o *timing) bool { return o.stores }) {
			clocked[t.name()] = true
		}
	}
	for more := true; more; {
		more = false
		for _, t := range code {
			asks := func(c call) bool { return clocked[c.name] && slices.ContainsFunc(byName[c.name], isVerdict) }
			if !clocked[t.name()] && isVerdict(t) && slices.ContainsFunc(t.calls, asks) {
				clocked[t.name()], more = true, true
			}
		}
	}
	return clocked
}

// isVerdict reports whether a function returns a number, a boolean or a level first.
func isVerdict(t *timing) bool {
	results := t.decl.Type.Results
	if results == nil || len(results.List) == 0 {
		return false
	}
	switch of := results.List[0].Type.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"bool", "int", "int64", "uint64", "uint32"}, of.Name)
	case *ast.SelectorExpr:
		return of.Sel.Name == "Level"
	}
	return false
}

// limits reports whether a function writes a log as the time says that has passed since the last line: after it has
// looked at that, or in the same call.
func (t *timing) limits(clocked map[string]bool, byName map[string][]*timing) bool {
	var asked []token.Pos
	if clocked[t.name()] {
		asked = append(asked, t.compares...)
	}
	for _, c := range t.calls {
		if clocked[c.name] && slices.ContainsFunc(byName[c.name], isVerdict) {
			asked = append(asked, c.pos)
		}
	}
	if len(asked) == 0 {
		return false
	}
	first := slices.Min(asked)
	return slices.ContainsFunc(t.logs, func(log *ast.CallExpr) bool { return log.End() > first }) ||
		slices.ContainsFunc(t.calls, func(c call) bool {
			return c.pos > first && slices.ContainsFunc(byName[c.name], func(o *timing) bool { return o.stores && len(o.logs) > 0 })
		})
}
