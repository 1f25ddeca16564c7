// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	docInlineMax = 10 // a longer package comment has a doc.go
	header       = "// Copyright The Quorate Authors\n// SPDX-License-Identifier: Apache-2.0\n"
)

// packageDocs looks only at comments that are there; that each package has one which
// begins with the package's name is up to a linter.
// name of its package, is up to a linter.
func packageDocs(r *Repository) []Fault {
	var faults []Fault
	for _, f := range r.Files {
		doc := f.Syntax.Doc
		if doc == nil || f.Test || f.Generated {
			continue
		}
		if f.Syntax.Name.Name == "main" {
			if want := "Command " + path.Base(f.Dir()); !strings.HasPrefix(doc.Text(), want) {
				faults = append(faults, r.at(doc.Pos(), "the package comment must begin with %q", want))
			}
			continue
		}
		lines := r.Fset.Position(doc.End()).Line - r.Fset.Position(doc.Pos()).Line + 1
		if lines > docInlineMax && path.Base(f.Name) != "doc.go" {
			faults = append(faults, r.at(doc.Pos(), "a package comment of %d lines belongs into doc.go", lines))
		}
	}
	return faults
}

func headers(r *Repository) []Fault {
	var faults []Fault
	for _, f := range r.Files {
		if !f.Generated && !strings.HasPrefix(string(f.Source), header) {
			faults = append(faults, Fault{File: f.Name, Line: 1, Text: "must begin with the two lines of copyright and licence"})
		}
	}
	return faults
}

func fileNames(r *Repository) []Fault {
	var faults []Fault
	for _, f := range r.Files {
		stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.Name), ".go"), "_test")
		for _, name := range []string{stem, path.Base(f.Dir())} {
			if slices.Contains([]string{"util", "utils", "helper", "helpers", "types", "common", "misc"}, name) {
				faults = append(faults, Fault{File: f.Name, Text: fmt.Sprintf("%q says nothing about what is inside", name)})
			}
		}
	}
	return faults
}

// calls yields each mention of a member of an imported package, whatever name the file
// has imported the package under.
func calls(f *File, imported string) func(func(*ast.SelectorExpr) bool) {
	return func(yield func(*ast.SelectorExpr) bool) {
		local := ""
		for _, spec := range f.Syntax.Imports {
			if strings.Trim(spec.Path.Value, "`\"") != imported {
				continue
			}
			local = path.Base(imported)
			if imported == "math/rand/v2" {
				local = "rand"
			}
			if spec.Name != nil {
				local = spec.Name.Name
			}
		}
		if local == "" {
			return
		}
		done := false
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if ok && !done {
				if id, ok := selector.X.(*ast.Ident); ok && id.Name == local {
					done = !yield(selector)
				}
			}
			return !done
		})
	}
}

var (
	unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)
	numbered   = regexp.MustCompile(`\bTODO\(#\d+\)`)
)

func todo(r *Repository) []Fault {
	var faults []Fault
	for _, f := range r.Files {
		if f.Generated {
			continue
		}
		for _, group := range f.Syntax.Comments {
			for _, comment := range group.List {
				if unfinished.MatchString(numbered.ReplaceAllString(comment.Text, "")) {
					faults = append(faults, r.at(comment.Pos(), "unfinished work without an issue number, write TODO(#12)"))
				}
			}
		}
	}
	return faults
}
