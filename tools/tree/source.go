// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The checks of single files follow, in the order of a file: what the package is ([packageDocs]), the licence
// ([headers]), how a long file opens ([fileHeads]), what it is called ([fileNames]), how wide its comments are
// ([commentWidth]), and notes of unfinished work ([todo]). [calls] serves other checks.

const (
	maxComment   = 120 // columns of a line of prose in a comment, a tab being one
	maxDocInline = 10  // a longer package comment has a doc.go
	maxHeadless  = 150 // a file with more lines opens with what happens in it
	header       = "// Copyright The Quorate Authors\n// SPDX-License-Identifier: Apache-2.0\n"
)

// packageDocs looks only at comments that are there; that each package has one which
// begins with the package's name is up to a linter.
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
		if lines > maxDocInline && path.Base(f.Name) != "doc.go" {
			faults = append(faults, r.at(doc.Pos(), "a package comment of %d lines belongs into doc.go", lines))
		}
	}
	return faults
}

// fileHeads demands of each long file of production that it opens with a comment on what
// happens in it: one of its own before the first declaration, or that of the package.
func fileHeads(r *Repository) []Fault {
	var faults []Fault
	for _, f := range r.Files {
		lines := strings.Count(string(f.Source), "\n")
		if f.Test || f.Generated || lines <= maxHeadless || hasHead(f.Syntax) {
			continue
		}
		faults = append(faults, Fault{File: f.Name, Line: 1, Text: fmt.Sprintf(
			"has %d lines, and no comment before its first declaration on what happens in it and in which order", lines)})
	}
	return faults
}

// commentWidth looks at the prose of comments that have lines of their own: code in them, and the output of an example,
// is as wide as it is.
func commentWidth(r *Repository) []Fault {
	prose := regexp.MustCompile(`^\t*// (  - |    )?\S`)
	var faults []Fault
	for _, f := range r.Files {
		if f.Generated {
			continue
		}
		lines := strings.Split(string(f.Source), "\n")
		for _, group := range f.Syntax.Comments {
			if strings.HasPrefix(group.Text(), "Output:") || strings.HasPrefix(group.Text(), "Unordered output:") {
				continue
			}
			for _, c := range group.List {
				line := lines[r.Fset.Position(c.Pos()).Line-1]
				if width := utf8.RuneCountInString(line); width > maxComment && prose.MatchString(line) {
					faults = append(faults, r.at(c.Pos(), "a line of a comment with %d columns, of %d that it may have: wrap it", width, maxComment))
				}
			}
		}
	}
	return faults
}

// hasHead reports whether a comment stands between the imports and the first other
// declaration and belongs to none, or the package has its comment in the file. Comments for
// tools, such as //go:build, are none.
func hasHead(file *ast.File) bool {
	if file.Doc != nil {
		return true
	}
	first, doc := file.FileEnd, (*ast.CommentGroup)(nil)
	for _, decl := range file.Decls {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
			continue
		}
		first, doc = decl.Pos(), docOf(decl)
		break
	}
	return slices.ContainsFunc(file.Comments, func(c *ast.CommentGroup) bool {
		return c.Pos() > file.Name.End() && c.End() < first && c != doc && strings.TrimSpace(c.Text()) != ""
	})
}

func docOf(decl ast.Decl) *ast.CommentGroup {
	if d, ok := decl.(*ast.GenDecl); ok {
		return d.Doc
	}
	return decl.(*ast.FuncDecl).Doc
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
