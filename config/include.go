// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Included files. A document's list of them is taken out of its tree; the reader then
// reads each file that the caller named with the files that it includes, depth first,
// bounded in depth and number, and inside the directory of the named file only.

const (
	// includeKey is the key at the top of a file that lists included files.
	includeKey = "include"
	// schemaKey is the key at the top of a JSON file by which editors find the schema.
	// This package ignores it.
	schemaKey = "$schema"
	// maxIncludeDepth bounds how deep files may include one another.
	maxIncludeDepth = 8
	// maxFiles bounds the files of one configuration: files that each include the next
	// twice double their number at each level.
	maxFiles = 100
)

// takeIncludes removes the list of included files from the tree and keeps it apart,
// and removes the schema of a JSON file.
func (doc *document) takeIncludes() Errors {
	if _, ok := doc.tree[schemaKey].(string); ok {
		delete(doc.tree, schemaKey)
	}
	value, ok := doc.tree[includeKey]
	if !ok {
		return nil
	}
	delete(doc.tree, includeKey)
	fault := func(path []string, reason string) *Error {
		line := doc.lines[strings.Join(path, separator)]
		return &Error{File: doc.name, Line: line, Key: display(path), Reason: reason, Err: ErrSyntax}
	}
	items, ok := value.([]any)
	if !ok {
		return Errors{fault([]string{includeKey}, wrongType("a list of files", value)+", write [base.yaml]")}
	}
	var faults Errors
	for i, one := range items {
		at := item([]string{includeKey}, i)
		text, ok := one.(string)
		switch {
		case !ok || text == "":
			faults = append(faults, fault(at, "must be the path of a file"))
		case filepath.IsAbs(text) || strings.HasPrefix(text, "/"):
			faults = append(faults, fault(at, fmt.Sprintf("%q is an absolute path, an included file is named relative to the file that includes it", short(text))))
		default:
			doc.includes = append(doc.includes, text)
		}
	}
	return faults
}

// osDirectory is the whole file system.
type osDirectory struct{}

func (osDirectory) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }
func (osDirectory) Open(name string) (*os.File, error)    { return os.Open(name) }

// source is a file that the caller named.
type source struct {
	name string // as the caller wrote it, for people
	path string // absolute, so that the working directory may change
}

// reader reads files and the files that they include.
type reader struct {
	docs   []document // in the order in which they are merged
	faults Errors
	files  []string // absolute paths of all files that were examined, also of missing ones
	count  int

	formats []Format // Those that were given.
}

// link is one file in a chain of inclusions.
type link struct {
	name string // for people
	path string // relative to the root directory
	info fs.FileInfo
}

// source reads a file that the caller named, and the files that it includes. Included
// files must be inside its directory, symbolic links resolved: otherwise anyone who
// may write the file could have error messages show any other file of the machine.
func (r *reader) source(s source) {
	r.files = append(r.files, s.path)
	doc, ok := r.document(osDirectory{}, s.path, s.name)
	if !ok {
		return
	}
	if len(doc.includes) > 0 {
		root, err := os.OpenRoot(filepath.Dir(s.path))
		if err != nil {
			r.faults = append(r.faults, &Error{File: s.name, Reason: oneLine(err.Error()), Err: ErrRead})
			return
		}
		defer root.Close() //nolint:errcheck // Only read from.
		top := link{name: s.name, path: filepath.Base(s.path)}
		if top.info, err = root.Stat(top.path); err != nil { // The named file is a link out of the directory: it can include, but not be included.
			top.info = nil
		}
		r.includes(root, doc, []link{top})
	}
	r.docs = append(r.docs, doc)
}

// document reads and checks one file.
func (r *reader) document(dir directory, path, name string) (document, bool) {
	data, fault := read(dir, path, name, r.formats)
	if fault != nil {
		r.faults = append(r.faults, fault)
		return document{}, false
	}
	doc, faults := scan(name, data, r.formats)
	r.faults = append(r.faults, faults...)
	return doc, len(faults) == 0
}

// includes reads the files that the last file of the chain includes, in order, so that
// later files are merged over earlier ones, and the including file over all of them.
func (r *reader) includes(root *os.Root, doc document, chain []link) {
	last := chain[len(chain)-1]
	for i, text := range doc.includes {
		next := link{name: filepath.Join(filepath.Dir(last.name), filepath.FromSlash(text)), path: filepath.Join(filepath.Dir(last.path), filepath.FromSlash(text))}
		if reason := r.include(root, next, chain); reason != "" {
			at := item([]string{includeKey}, i)
			r.faults = append(r.faults, &Error{
				File: last.name, Line: doc.lines[strings.Join(at, separator)], Key: display(at), Reason: reason, Err: ErrRead,
			})
		}
	}
}

// include reads one included file. It returns why the file cannot be included; faults
// in the file are recorded with the others.
func (r *reader) include(root *os.Root, next link, chain []link) (reason string) {
	if !filepath.IsLocal(next.path) {
		return next.name + " is outside the directory of " + chain[0].name + ", where included files must be"
	}
	r.files = append(r.files, filepath.Join(root.Name(), next.path))
	if r.count++; r.count > maxFiles {
		return fmt.Sprintf("more than %d files are included", maxFiles)
	}
	if len(chain) > maxIncludeDepth {
		return fmt.Sprintf("files include one another deeper than %d levels: %s", maxIncludeDepth, route(append(slices.Clip(chain), next)))
	}
	info, err := root.Stat(next.path)
	if err == nil {
		next.info = info
		for i, above := range chain {
			if above.info != nil && os.SameFile(above.info, info) {
				return "files include one another in a circle: " + route(append(slices.Clip(chain[i:]), next))
			}
		}
	}
	data, fault := read(root, next.path, next.name, r.formats)
	if fault != nil {
		return fault.Error()
	}
	doc, faults := scan(next.name, data, r.formats)
	if r.faults = append(r.faults, faults...); len(faults) == 0 {
		r.includes(root, doc, append(slices.Clip(chain), next))
		r.docs = append(r.docs, doc)
	}
	return ""
}

// route returns the names of a chain of files, for people.
func route(chain []link) string {
	names := make([]string, len(chain))
	for i, l := range chain {
		names[i] = l.name
	}
	return strings.Join(names, " -> ")
}
