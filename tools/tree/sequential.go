// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// sequential looks for goroutines in the packages that are tested without the
// race detector, their tests included.
func sequential(r *Repository) []Fault {
	var faults []Fault
	for _, dir := range r.Sequential {
		if !slices.ContainsFunc(r.Files, func(f *File) bool { return f.Dir() == dir }) {
			faults = append(faults, Fault{File: "go.work", Text: fmt.Sprintf("lanes.Sequential names %s, which is no package", dir)})
		}
		for _, f := range r.Files {
			if f.Dir() == dir {
				faults = append(faults, r.goroutines(f)...)
			}
		}
	}
	return faults
}

// goroutines finds the places of a file that start a goroutine, or have the testing package
// start one.
func (r *Repository) goroutines(f *File) []Fault {
	var faults []Fault
	const text = "%s in a package that lanes.Sequential has tested without the race detector"
	for _, spec := range f.Syntax.Imports {
		if imported := strings.Trim(spec.Path.Value, "`\""); imported == "testing/synctest" {
			faults = append(faults, r.at(spec.Pos(), text, "a bubble of goroutines"))
		}
	}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			faults = append(faults, r.at(n.Pos(), text, "a goroutine"))
		case *ast.CallExpr:
			if method, ok := n.Fun.(*ast.SelectorExpr); ok {
				switch method.Sel.Name {
				case "Parallel", "RunParallel":
					faults = append(faults, r.at(n.Pos(), text, "a parallel test"))
				case "Go": // Of a sync.WaitGroup, or of what has the same for its goroutines.
					faults = append(faults, r.at(n.Pos(), text, "a goroutine"))
				}
			}
		}
		return true
	})
	for use := range calls(f, "time") {
		if use.Sel.Name == "AfterFunc" {
			faults = append(faults, r.at(use.Pos(), text, "a timer that starts a goroutine"))
		}
	}
	return faults
}
