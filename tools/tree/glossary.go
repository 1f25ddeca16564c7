// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"go/ast"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The glossary is read row by row ([glossary]), and the Go name in the last column of each
// row is looked up among what the tree declares ([declared]).

// glossary checks the table under "## Glossary" in docs/architecture.md: each row has a
// word, its meaning and, as code, what the word is in Go. That is a package, by the end of
// its directory; what a package declares, after a dot; or a field or method of a type. No
// word has two rows.
func glossary(r *Repository) ([]Fault, error) {
	text, err := os.ReadFile(filepath.Join(r.Root, architecture))
	if err != nil {
		return nil, err
	}
	rows, err := rowsUnder(string(text), "Glossary", 3)
	if err != nil {
		return nil, err
	}
	known := declared(r)
	seen := map[string]bool{}
	var faults []Fault
	for _, row := range rows {
		word, name := row[0], row[2]
		if seen[word] {
			faults = append(faults, Fault{File: architecture, Text: fmt.Sprintf("the glossary has two rows for %q", word)})
		}
		seen[word] = true
		if !known[strings.Trim(name, "`")] {
			faults = append(faults, Fault{File: architecture, Text: fmt.Sprintf("the glossary says that %q is %s in Go, which the tree does not have", word, name)})
		}
	}
	return faults, nil
}

// declared returns every spelling under which the glossary may name something: each
// directory with Go files in full and by each of its ends, the same with a dot and a name
// declared there, and each type with a dot and a field or method of it, be it one of a struct
// of the same package that the type embeds.
func declared(r *Repository) map[string]bool {
	known := map[string]bool{}
	type embedding struct{ dir, outer, inner string }
	var embedded []embedding
	members := map[string][]string{} // By directory and type.
	for _, f := range r.Files {
		if f.Test {
			continue
		}
		dirs := ends(f.Dir())
		for _, dir := range dirs {
			known[dir] = true
		}
		for _, name := range declaredIn(f.Syntax) {
			if of, member, ok := strings.Cut(name, "."); ok {
				known[name] = true
				members[f.Dir()+"."+of] = append(members[f.Dir()+"."+of], member)
				continue
			}
			for _, dir := range dirs {
				known[dir+"."+name] = true
			}
		}
		for outer, inner := range embeddings(f.Syntax) {
			embedded = append(embedded, embedding{f.Dir(), outer, inner})
		}
	}
	for _, e := range embedded {
		for _, member := range members[e.dir+"."+e.inner] {
			known[e.outer+"."+member] = true
		}
	}
	return known
}

// embeddings yields each struct type of a file with each type of its package that it embeds.
func embeddings(file *ast.File) iter.Seq2[string, string] {
	return func(yield func(outer, inner string) bool) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			of, ok := spec.Type.(*ast.StructType)
			if !ok {
				return false
			}
			for _, field := range of.Fields.List {
				if inner := baseName(field.Type); len(field.Names) == 0 && inner != "" && !yield(spec.Name.Name, inner) {
					return false
				}
			}
			return false
		})
	}
}

// ends returns the ends of a directory: for a/b/c those are c, b/c and a/b/c.
func ends(dir string) []string {
	all := []string{path.Base(dir)}
	for rest := path.Dir(dir); rest != "."; rest = path.Dir(rest) {
		all = append(all, path.Base(rest)+"/"+all[len(all)-1])
	}
	return all
}

// declaredIn returns the names that a file declares; fields and methods follow the name of
// their type and a dot.
func declaredIn(file *ast.File) []string {
	var names []string
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiverOf(d) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				names = append(names, namesOf(spec)...)
			}
		}
	}
	return names
}

func namesOf(spec ast.Spec) []string {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		return identsOf(s.Names)
	case *ast.TypeSpec:
		names := []string{s.Name.Name}
		var members *ast.FieldList
		switch t := s.Type.(type) {
		case *ast.StructType:
			members = t.Fields
		case *ast.InterfaceType:
			members = t.Methods
		default:
			return names
		}
		for _, member := range members.List {
			for _, name := range identsOf(member.Names) {
				names = append(names, s.Name.Name+"."+name)
			}
		}
		return names
	default:
		return nil
	}
}

func identsOf(idents []*ast.Ident) []string {
	names := make([]string, len(idents))
	for i, id := range idents {
		names[i] = id.Name
	}
	return names
}

// rowsUnder returns the rows of the table under a heading of the second level, without its
// head: the trimmed cells of each. A row needs at least the given number of columns.
func rowsUnder(markdown, heading string, columns int) ([][]string, error) {
	_, section, found := strings.Cut("\n"+strings.ReplaceAll(markdown, "\r\n", "\n"), "\n## "+heading+"\n")
	if !found {
		return nil, fmt.Errorf("%s: no heading \"## %s\"", architecture, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows [][]string
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) < columns {
			return nil, fmt.Errorf("%s: the row of %q needs %d columns", architecture, strings.Trim(cells[0], "`"), columns)
		}
		rows = append(rows, cells)
	}
	if i := slices.IndexFunc(rows, func(cells []string) bool { return strings.HasPrefix(strings.TrimLeft(cells[0], ":"), "--") }); i >= 0 {
		rows = rows[i+1:]
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: no table under \"## %s\"", architecture, heading)
	}
	return rows, nil
}
