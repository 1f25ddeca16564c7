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
	functionLinesMax = 70
	fileLinesMax     = 800
	docInlineMax     = 10 // a longer package comment has a doc.go
	header           = "// Copyright The Quorate Authors\n// SPDX-License-Identifier: Apache-2.0\n"
)

func packageDocs(r *Repository) []Fault {
	var faults []Fault
	documented := map[string]bool{}
	var dirs []string
	for _, f := range r.Files {
		if f.Test {
			continue
		}
		if !slices.Contains(dirs, f.Dir()) {
			dirs = append(dirs, f.Dir())
		}
		doc := f.Syntax.Doc
		if doc == nil || f.Generated {
			documented[f.Dir()] = documented[f.Dir()] || f.Generated
			continue
		}
		documented[f.Dir()] = true
		want := "Package " + f.Syntax.Name.Name
		if f.Syntax.Name.Name == "main" {
			want = "Command " + path.Base(f.Dir())
		}
		if !strings.HasPrefix(doc.Text(), want) {
			faults = append(faults, r.at(doc.Pos(), "the package comment must begin with %q", want))
		}
		lines := r.Fset.Position(doc.End()).Line - r.Fset.Position(doc.Pos()).Line + 1
		if lines > docInlineMax && path.Base(f.Name) != "doc.go" && f.Syntax.Name.Name != "main" {
			faults = append(faults, r.at(doc.Pos(), "a package comment of %d lines belongs into doc.go", lines))
		}
	}
	for _, dir := range dirs {
		if !documented[dir] {
			faults = append(faults, Fault{File: dir, Text: "the package has no comment"})
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

func functionLength(r *Repository) []Fault {
	var faults []Fault
	for _, f := range r.Files {
		if f.Test || f.Generated {
			continue
		}
		for _, decl := range f.Syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := r.Fset.Position(fn.End()).Line - r.Fset.Position(fn.Pos()).Line + 1
			if lines > functionLinesMax {
				faults = append(faults, r.at(fn.Pos(), "%s has %d lines, %d are allowed", fn.Name.Name, lines, functionLinesMax))
			}
		}
	}
	return faults
}

func fileLength(r *Repository) []Fault {
	var faults []Fault
	for _, f := range r.Files {
		if !f.Generated && f.Lines() > fileLinesMax {
			faults = append(faults, Fault{File: f.Name, Text: fmt.Sprintf("has %d lines, split it by concept at %d", f.Lines(), fileLinesMax)})
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

func noInit(r *Repository) []Fault {
	var faults []Fault
	for _, f := range r.Files {
		if f.Generated {
			continue
		}
		for _, decl := range f.Syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				faults = append(faults, r.at(fn.Pos(), "init is not allowed"))
			}
		}
	}
	return faults
}

func noSleep(r *Repository) []Fault {
	var faults []Fault
	for _, f := range r.Files {
		if !f.Test {
			continue
		}
		for call := range calls(f, "time") {
			if call.Sel.Name == "Sleep" {
				faults = append(faults, r.at(call.Pos(), "time.Sleep in a test"))
			}
		}
	}
	return faults
}

// calls yields each mention of a member of an imported package, under whatever
// name the file has imported it.
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
