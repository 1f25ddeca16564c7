// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package steps is a check for tests: what a member sends is a bounded step on the loop that answers heartbeats. A test
// has a row for each type of message that a machine receives, with the largest that it accepts, and measures the step:
// by what it allocates, and by what the machine counts itself, never by time.
package steps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"runtime"
	"slices"
	"testing"
)

// Cases returns the types for which the type switches of some functions, or methods, of a file have cases, as they
// stand there, sorted. It fails the test if one of the functions is missing or has none.
func Cases(tb testing.TB, path string, functions ...string) (types []string) {
	tb.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range functions {
		before := len(types)
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.Name == name {
				types = append(types, casesOf(fn)...)
			}
		}
		if len(types) == before {
			tb.Fatalf("%s has no function %s with a type switch", path, name)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

func casesOf(fn *ast.FuncDecl) (types []string) {
	ast.Inspect(fn, func(n ast.Node) bool {
		cases, ok := n.(*ast.TypeSwitchStmt)
		if !ok {
			return true
		}
		for _, clause := range cases.Body.List {
			for _, typ := range clause.(*ast.CaseClause).List { // By the grammar of Go.
				if id, ok := typ.(*ast.Ident); ok {
					types = append(types, id.Name)
				}
			}
		}
		return true
	})
	return types
}

// Allocated returns how many objects do allocates, and how many bytes. Nothing else may run meanwhile: tests that call
// it are not parallel.
func Allocated(do func()) (objects, bytes int) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int(after.Mallocs - before.Mallocs), int(after.TotalAlloc - before.TotalAlloc) // Small.
}
