// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package hocon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Reading: a reader parses the file and what it includes into one object, of which settle makes the settings.

// The bounds of what is read.
const (
	maxFileBytes = 1 << 20
	maxValues    = 20_000
	maxDepth     = 32
	maxIncludes  = 8
	maxSteps     = 10 * maxValues
	maxText      = 64 << 10
)

// Error is one thing that is wrong with a file.
type Error struct {
	File   string
	Line   int
	Reason string

	circle bool // A value refers to itself.
}

// Error returns the fault behind its place.
func (f *Error) Error() string {
	if f.Line == 0 {
		return f.File + ": " + f.Reason
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Reason)
}

// Setting is a scalar or a list of a file.
type Setting struct {
	Path []string // The names of its key.
	Text string   // Of a scalar.
	List []string // The items of a list of scalars.
	// Kind is what it is.
	Kind Kind
	File string
	Line int
}

// Key returns the names of the key, joined by dots.
func (s Setting) Key() string { return strings.Join(s.Path, ".") }

// Kind is a kind of setting.
type Kind uint8

// The kinds of settings.
const (
	Scalar Kind = iota
	List
	Mixed // A list with objects or lists in it.
)

// Read reads a file and what it includes, with an environment as [os.Environ] has it. The settings are sorted by key.
// The error is a [*Error].
func Read(name string, environ []string) ([]Setting, error) {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, &Error{File: name, Reason: reasonOf(err)}
	}
	defer root.Close() //nolint:errcheck // Nothing was written.
	r := reader{dir: root, shown: filepath.Dir(name)}
	top := &node{file: name, fields: map[string]*node{}}
	if fault := r.file(top, filepath.Base(name), nil); fault != nil {
		return nil, fault
	}
	env := map[string]string{}
	for _, entry := range environ {
		if key, text, ok := strings.Cut(entry, "="); ok {
			env[key] = text
		}
	}
	return settle(top, env)
}

// settle replaces substitutions, and lists the settings.
func settle(top *node, env map[string]string) ([]Setting, error) {
	v, fault := (&resolver{root: top, environ: env, open: map[*node]bool{}}).resolve(top)
	if fault != nil {
		return nil, fault
	}
	return list(v, nil, nil), nil
}

// list lists what is in an object.
func list(v *value, at []string, all []Setting) []Setting {
	for _, key := range slices.Sorted(maps.Keys(v.fields)) {
		inside := v.fields[key]
		path := append(slices.Clip(at), key)
		switch {
		case inside.null:
		case inside.fields != nil:
			all = list(inside, path, all)
		case inside.isList:
			all = append(all, listed(inside, path))
		default:
			all = append(all, Setting{Path: path, Text: inside.text, File: inside.file, Line: inside.line})
		}
	}
	return all
}

func listed(v *value, path []string) Setting {
	s := Setting{Path: path, Kind: List, File: v.file, Line: v.line}
	for _, item := range v.list {
		if item.fields != nil || item.isList {
			return Setting{Path: path, Kind: Mixed, File: v.file, Line: v.line}
		}
		s.List = append(s.List, item.text)
	}
	return s
}

// reader reads the files of one call of [Read].
type reader struct {
	dir   *os.Root
	shown string // The directory, as the caller named it.
	depth int    // Of includes.
	count int    // Values so far.
}

// file reads a file of the directory into an object, which is at a path of the first file.
func (r *reader) file(into *node, name string, base []string) *Error {
	shown := filepath.Join(r.shown, name)
	data, err := r.content(name)
	if err != nil {
		return &Error{File: shown, Reason: reasonOf(err)}
	}
	p := &parser{scanner: scanner{file: shown, rest: string(data), line: 1}, reader: r, base: base}
	return p.parse(into)
}

func (r *reader) content(name string) ([]byte, error) {
	info, err := r.dir.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	f, err := r.dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // Nothing was written.
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxFileBytes:
		return nil, fmt.Errorf("has more than %d bytes", maxFileBytes)
	case !utf8.Valid(data):
		return nil, errors.New("is not UTF-8 text")
	}
	return data, nil
}

// include reads a file that another one includes, over the fields that are there. One that is not there is passed over
// unless it is required, as the language has it.
func (r *reader) include(from *parser, into *node, name string, line int, required bool) *Error {
	if r.depth++; r.depth > maxIncludes {
		return &Error{File: from.file, Line: line, Reason: fmt.Sprintf("more than %d levels of includes", maxIncludes)}
	}
	defer func() { r.depth-- }()
	inner, err := filepath.Rel(r.shown, name)
	if err != nil || !filepath.IsLocal(inner) {
		return &Error{File: from.file, Line: line, Reason: "include " + name + ": is outside of the directory of the first file"}
	}
	included := &node{file: name, fields: map[string]*node{}}
	switch fault := r.file(included, inner, slices.Concat(from.base, from.at)); {
	case fault == nil:
	case fault.Line == 0 && fault.Reason == reasonOf(fs.ErrNotExist) && !required:
		return nil
	case fault.Line == 0:
		return &Error{File: from.file, Line: line, Reason: "include " + name + ": " + fault.Reason}
	default:
		return fault
	}
	for key, v := range included.fields {
		merge(into, key, v)
	}
	return nil
}

// reasonOf returns an error of the system without the name of the file.
func reasonOf(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "no such file"
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}
