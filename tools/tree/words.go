// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	_ "embed"
	"errors"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// The nouns of the code are the field's, or this project's and then in the glossary: [nouns] goes from the code to the
// lists, as [glossary] goes from the list to the code.

// fieldWords are the words that need no explanation: those of Go's library, of the documents of the originals, of TCP,
// Paxos, CRDTs, queues and OpenTelemetry.
//
//go:embed words.txt
var fieldWords string

var (
	camel      = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)
	isVersion  = regexp.MustCompile(`^v\d+$`)
	isBound    = regexp.MustCompile(`^([a-z]\w*(Most|Max|Limit|Bound)|[A-Z]\w*(Most|Max|Bound))$`)
	withNumber = regexp.MustCompile(`^[a-z][A-Za-z]*[a-z]\d$`)
)

// nouns demands that the last word of each exported type, each struct and each package is in words.txt or in
// the glossary, that no function is told from another one by a number, and that bounds are named as bounds.
func nouns(r *Repository) ([]Fault, error) {
	known, err := knownWords(r)
	if errors.Is(err, errGlossary) {
		return nil, nil // The check of the glossary says so.
	}
	if err != nil {
		return nil, err
	}
	var faults []Fault
	for _, f := range r.Files {
		if f.Test || f.Generated {
			continue
		}
		if noun := path.Base(f.Dir()); !known.has(noun) && !known.compose(noun) && path.Base(f.Name) == "doc.go" {
			faults = append(faults, unknownWord(r, f.Syntax.Name, "package "+noun, noun))
		}
		for _, d := range f.Syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if withNumber.MatchString(d.Name.Name) {
					faults = append(faults, r.at(d.Pos(), "%s is told from others by a number: say what it does", d.Name.Name))
				}
			case *ast.GenDecl:
				faults = append(faults, misnamedBounds(d, r.at)...)
				for _, s := range d.Specs {
					if t, ok := s.(*ast.TypeSpec); ok && counts(t) && !known.has(nounOf(t.Name.Name)) {
						faults = append(faults, unknownWord(r, t.Name, t.Name.Name, nounOf(t.Name.Name)))
					}
				}
			}
		}
	}
	return faults, nil
}

// misnamedBounds finds constants of a declaration that are bounds and do not say so as all others do.
func misnamedBounds(d *ast.GenDecl, at func(token.Pos, string, ...any) Fault) []Fault {
	var faults []Fault
	for _, s := range d.Specs {
		values, ok := s.(*ast.ValueSpec)
		if !ok || d.Tok != token.CONST {
			continue
		}
		for _, name := range values.Names {
			if isBound.MatchString(name.Name) {
				faults = append(faults, at(name.Pos(), "%s: a bound of a count or size begins with max, and one of time ends with Timeout", name.Name))
			}
		}
	}
	return faults
}

func unknownWord(r *Repository, at ast.Node, what, noun string) Fault {
	return r.at(at.Pos(), "%s: %q is in no list: if it is the field's word, add it to tools/tree/words.txt; else use that, or explain yours in the glossary of %s",
		what, noun, architecture)
}

// counts reports whether a type is one whose noun counts.
func counts(t *ast.TypeSpec) bool {
	_, isStruct := t.Type.(*ast.StructType)
	return t.Name.IsExported() || isStruct
}

// nounOf returns the last word of a name, in lower case.
func nounOf(name string) string {
	parts := camel.FindAllString(name, -1)
	return strings.ToLower(parts[len(parts)-1])
}

// vocabulary are words of the field and of this project.
type vocabulary map[string]bool

// has reports whether a word is there, or one of which it is the plural.
func (v vocabulary) has(word string) bool {
	return v[word] || v[strings.TrimSuffix(word, "s")] || v[strings.TrimSuffix(word, "es")] ||
		v[strings.TrimSuffix(word, "ies")+"y"] || isVersion.MatchString(word)
}

// compose reports whether the name of a package is put together of two words.
func (v vocabulary) compose(name string) bool {
	for i := range name {
		if v[name[:i]] && v[name[i:]] {
			return true
		}
	}
	return false
}

// errGlossary says that the glossary cannot be read.
var errGlossary = errors.New("the glossary cannot be read")

// knownWords returns the words of words.txt, and of the glossary: each row's last one, and the noun of its name in Go.
func knownWords(r *Repository) (vocabulary, error) {
	known := vocabulary{}
	for line := range strings.Lines(fieldWords) {
		if !strings.HasPrefix(line, "#") {
			for word := range strings.FieldsSeq(line) {
				known[word] = true
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(r.Root, architecture))
	if err != nil {
		return nil, err
	}
	rows, err := rowsUnder(string(text), "Glossary", 3)
	if err != nil {
		return nil, errGlossary
	}
	for _, row := range rows {
		fields := strings.Fields(strings.TrimSuffix(row[0], "*"))
		known[fields[len(fields)-1]] = true
		name := strings.Trim(row[2], "`")
		known[nounOf(name[strings.LastIndexAny(name, "./")+1:])] = true
	}
	return known, nil
}
