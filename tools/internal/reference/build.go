// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/manual"
)

// [Build] walks over the struct of the defaults, finds the comment of each field in the
// sources ([comments]) and rewrites it as text for operators ([plain]). A setting whose
// declaration lacks something is an error ([lacks]).

// Build describes the settings of a struct that holds the defaults, with the comments of
// their declarations: the directory root holds the sources that are imported under the
// prefix. The error lists every setting whose declaration lacks something.
func Build(root, prefix string, defaults any) ([]manual.Setting, error) {
	declared, err := config.Settings(defaults)
	if err != nil {
		return nil, err
	}
	c := comments{root: root, prefix: prefix, packages: map[string]map[string]*ast.TypeSpec{}, docs: map[*ast.TypeSpec]string{}}
	var settings []manual.Setting
	var faults []error
	for _, d := range declared {
		meaning, err := c.of(d)
		if err != nil {
			return nil, err
		}
		s := manual.Describe(d, meaning)
		settings = append(settings, s)
		faults = append(faults, lacks(d, s)...)
	}
	return settings, errors.Join(faults...)
}

// lacks lists what the declaration of a setting must say but does not.
func lacks(d config.Setting, s manual.Setting) []error {
	var faults []error
	lack := func(missing bool, what string) {
		if missing {
			faults = append(faults, fmt.Errorf("%s (%v, field %s): %s", s.Key, d.Struct, d.Field, what))
		}
	}
	kind := manual.ValueKind(d)
	counts := kind == config.TypeWhole || kind == config.TypeNumber
	lack(s.Meaning == "", "has no comment")
	lack(counts && s.Unit == "", `is a number and has no tag unit:"…"`)
	lack((counts || kind == config.TypeDuration) && s.Range == "", `has no tag range:"…"`)
	return faults
}

// comments finds the comments of declarations.
type comments struct {
	root     string
	prefix   string
	packages map[string]map[string]*ast.TypeSpec // by import path, by name
	docs     map[*ast.TypeSpec]string
}

// of returns the comment of a setting: that of its field, or that of its type for a group
// whose field has none.
func (c *comments) of(d config.Setting) (string, error) {
	kind := d.Struct
	if d.Field != "" {
		spec, err := c.declaration(d.Struct)
		if err != nil {
			return "", err
		}
		if text := fieldComment(spec, d.Field); text != "" {
			return plain(text, d.Field, keysIn(d.Struct)), nil
		}
		field, _ := d.Struct.FieldByName(d.Field)
		kind = field.Type
	}
	if kind.Kind() != reflect.Struct {
		return "", nil
	}
	spec, err := c.declaration(kind)
	if err != nil {
		return "", err
	}
	return plain(c.docs[spec], kind.Name(), nil), nil
}

// declaration returns the declaration of a struct type.
func (c *comments) declaration(t reflect.Type) (*ast.TypeSpec, error) {
	types, ok := c.packages[t.PkgPath()]
	if !ok {
		var err error
		if types, err = c.read(t.PkgPath()); err != nil {
			return nil, err
		}
		c.packages[t.PkgPath()] = types
	}
	if spec := types[t.Name()]; spec != nil {
		return spec, nil
	}
	return nil, fmt.Errorf("reference: no declaration of %v under %s", t, c.root)
}

// read parses the sources of a package.
func (c *comments) read(path string) (map[string]*ast.TypeSpec, error) {
	dir := filepath.Join(c.root, filepath.FromSlash(strings.TrimPrefix(path, c.prefix)))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reference: the sources of %s: %w", path, err)
	}
	types := map[string]*ast.TypeSpec{}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("reference: %w", err)
		}
		for _, declaration := range file.Decls {
			c.types(declaration, types)
		}
	}
	return types, nil
}

// types collects the types of one declaration.
func (c *comments) types(declaration ast.Decl, types map[string]*ast.TypeSpec) {
	general, ok := declaration.(*ast.GenDecl)
	if !ok || general.Tok != token.TYPE {
		return
	}
	for _, one := range general.Specs {
		if spec, ok := one.(*ast.TypeSpec); ok {
			types[spec.Name.Name] = spec
			c.docs[spec] = general.Doc.Text() + spec.Doc.Text()
		}
	}
}

// fieldComment returns the comment above a field, or else the one behind it.
func fieldComment(spec *ast.TypeSpec, name string) string {
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return ""
	}
	for _, field := range structure.Fields.List {
		for _, ident := range field.Names {
			if ident.Name != name {
				continue
			}
			if text := field.Doc.Text(); text != "" {
				return text
			}
			return field.Comment.Text()
		}
	}
	return ""
}

// keysIn maps the names of the fields of a struct to their keys.
func keysIn(t reflect.Type) map[string]string {
	keys := map[string]string{}
	for f := range t.Fields() {
		if key, _, _ := strings.Cut(f.Tag.Get("koanf"), ","); key != "" {
			keys[f.Name] = key
		}
	}
	return keys
}

// plain turns a Go comment into text for operators, in one line: the leading name is left
// out, other fields are called by their keys, and links lose their brackets.
func plain(comment, name string, keys map[string]string) string {
	text := strings.Join(strings.Fields(comment), " ")
	if rest, ok := strings.CutPrefix(text, name+" "); ok {
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, "is "), "are ")
		first, size := utf8.DecodeRuneInString(rest)
		text = string(unicode.ToUpper(first)) + rest[size:]
	}
	text = regexp.MustCompile(`\[(\*?[A-Za-z][A-Za-z0-9_.]*)\]`).ReplaceAllString(text, "$1")
	return regexp.MustCompile(`[A-Za-z]+`).ReplaceAllStringFunc(text, func(word string) string {
		// A name of one word may also be an ordinary word: "the Strategy" cannot be told
		// from a sentence that begins with Strategy.
		if key := keys[word]; strings.Contains(key, "-") {
			return key
		}
		return word
	})
}
