// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
)

// Loading: Load reads files with the files that they include, and merge lays their
// documents and the environment over one another into one tree, which remembers where
// each value came from. Sections are decoded from that tree in decode.go.

// Prefix begins the names of all environment variables that override settings.
const Prefix = "QUORATE_"

// separator joins the parts of a path inside koanf. Keys may contain dots
// ("127.0.0.1:7946" is a valid key), but never this control character, which the check
// of a document refuses.
const separator = "\x1f"

// File is the merged content of the files and the environment, with the origin of each
// value. It is immutable.
type File struct {
	from    *origin  // nil after Parse
	files   []string // absolute paths of all files that were examined
	sum     [sha256.Size]byte
	written [sha256.Size]byte // what the files alone gave, faults too
	paths   []string
	dir     string
	tree    map[string]any
	sources map[string]place // by joined path
	secrets []secret         // what took the place of references
	stray   []variable       // environment variables whose names have no level separator
}

// place is where a value was written.
type place struct {
	file string
	line int
	text bool // a text that is to be parsed as the type of its setting, such as that of a variable
}

// A Loader reads files in more formats and settings of providers, or with another environment
// than that of the process.
type Loader struct {
	// Environ is the environment as "NAME=value", as [os.Environ] returns it; nil
	// means none.
	Environ []string

	// Formats are those that are read beside YAML and JSON. One with the end of a name
	// that is built in is taken in its place.
	Formats []Format

	// Providers have settings that are in no file.
	Providers []Provider
}

// Load reads and merges the files in order, then the variables of the process's
// environment. At least one path is needed. The error is of type [Errors] and
// names the faults of all files.
func Load(paths ...string) (*File, error) {
	return Loader{Environ: os.Environ()}.Load(paths...)
}

// Load is the function [Load] with the environment, the formats and the providers of l. With a
// provider no path is needed.
func (l Loader) Load(paths ...string) (*File, error) {
	readers, faults := newProviderReaders(l.Providers)
	if len(faults) > 0 {
		return nil, faults
	}
	named := make([]source, len(paths))
	for i, path := range paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, Errors{{File: path, Reason: oneLine(err.Error()), Err: ErrRead}}
		}
		named[i] = source{name: path, path: abs}
	}
	clone := Loader{Environ: slices.Clone(l.Environ), Formats: slices.Clone(l.Formats), Providers: slices.Clone(l.Providers)}
	return complete((&origin{clone, named, readers}).load(context.Background()))
}

// origin is what a File was read from, in the order in which it is merged.
type origin struct {
	loader  Loader
	files   []source // The files named to Load.
	readers []*providerReader
}

// complete returns no File when there is an error.
func complete(f *File, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// load reads all of it. With an error it returns a File without content, which knows the
// examined files.
func (s *origin) load(ctx context.Context) (*File, error) {
	f := &File{from: s}
	if len(s.files)+len(s.readers) == 0 {
		return f, Errors{{Reason: "no configuration file was given", Err: ErrRead}}
	}
	r := reader{formats: s.loader.Formats}
	for _, named := range s.files {
		r.source(named)
	}
	f.written = sumOf(r.docs, r.faults)
	for _, l := range s.readers {
		doc, faults := l.read(ctx, readTimeout)
		if r.faults = append(r.faults, faults...); len(faults) == 0 {
			r.docs = append(r.docs, doc)
		}
	}
	if f.files = r.files; len(s.files) > 0 {
		f.dir = filepath.Dir(s.files[0].path)
	}
	if err := f.merge(r.docs, r.faults, s.loader.Environ); err != nil {
		return f, err
	}
	return f, f.refer(s.loader.Environ)
}

// Reload reads the same files and providers again, with the environment with which f was loaded. The
// result is independent of f: it keeps no key that was deleted. After [Parse] it
// returns an error.
func (f *File) Reload() (*File, error) {
	if f.from == nil {
		return nil, Errors{{Reason: "no configuration file was given", Err: ErrRead}}
	}
	return complete(f.from.load(context.Background()))
}

// Parse reads one document that is not in a file, under the given name, which
// is used in errors and whose end tells the format: YAML, JSON or one of those given.
// Dir is empty, no environment is applied, and nothing can be included or referred to.
func Parse(name string, data []byte, given ...Format) (*File, error) {
	doc, faults := scan(name, data, given)
	if len(doc.includes) > 0 {
		faults = append(faults, &Error{
			File: name, Line: doc.lines[includeKey], Key: includeKey, Reason: "only a file can include files", Err: ErrSyntax,
		})
	}
	f := &File{}
	if err := f.merge([]document{doc}, faults, nil); err != nil {
		return nil, err
	}
	return complete(f, f.refer(nil))
}

// merge lays the documents and the environment over one another.
func (f *File) merge(docs []document, faults Errors, environ []string) error {
	vars, stray, errs := variables(environ)
	if faults = append(faults, errs...); len(faults) > 0 {
		return faults
	}
	f.sources, f.stray = map[string]place{}, stray
	k := koanf.New(separator)
	for _, doc := range docs {
		if err := k.Load(confmap.Provider(doc.tree, ""), nil); err != nil {
			return Errors{{File: doc.name, Reason: oneLine(err.Error()), Err: ErrSyntax}}
		}
		f.paths = append(f.paths, doc.name)
		for path, line := range doc.lines {
			f.sources[path] = place{file: doc.name, line: line, text: doc.text}
		}
	}
	f.sum = sumOf(docs, nil)
	byName := map[string]variable{}
	lines := make([]string, 0, len(vars))
	for _, v := range vars {
		byName[v.name] = v
		lines = append(lines, v.name+"="+v.value)
		f.sources[strings.Join(v.path, separator)] = place{file: "$" + v.name, text: true}
	}
	overrides := env.Provider(separator, env.Opt{
		EnvironFunc:   func() []string { return lines },
		TransformFunc: func(name, value string) (string, any) { return strings.Join(byName[name].path, separator), value },
	})
	if err := k.Load(overrides, nil); err != nil {
		return Errors{{Reason: oneLine(err.Error()), Err: ErrSyntax}}
	}
	f.tree = k.Raw()
	return nil
}

// refer puts texts in the place of references.
func (f *File) refer(environ []string) error {
	r := references{of: f, environ: environ, known: map[string]string{}}
	r.replaceAll(f.tree, nil)
	for _, s := range f.secrets {
		f.sum = sha256.Sum256(fmt.Appendf(f.sum[:], "%q %q", s.name, s.text))
		f.written = sha256.Sum256(fmt.Appendf(f.written[:], "%q %q", s.name, s.text))
	}
	return r.faults.orNil()
}

// sumOf returns a hash of what was read.
func sumOf(docs []document, faults Errors) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, doc := range docs {
		fmt.Fprintf(h, "%q %d\n%s", doc.name, len(doc.data), doc.data)
	}
	fmt.Fprint(h, faults)
	h.Sum(sum[:0])
	return sum
}

// Dir returns the absolute directory of the first file. Relative paths inside the
// configuration are relative to it, wherever they come from. It is empty after
// [Parse] and without files.
func (f *File) Dir() string { return f.dir }

// Paths returns the merged files in order, an included file before the file that
// includes it, then the names of the providers.
func (f *File) Paths() []string { return slices.Clone(f.paths) }

// Resolve returns path as it is when it is absolute or empty, and relative to
// [File.Dir] otherwise.
func (f *File) Resolve(path string) string {
	if path == "" || filepath.IsAbs(path) || f.dir == "" {
		return path
	}
	return filepath.Join(f.dir, path)
}

// Sections returns the top-level keys, sorted.
func (f *File) Sections() []string {
	names := make([]string, 0, len(f.tree))
	for name := range f.tree {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Has reports whether the section is present, even if it is empty.
func (f *File) Has(section string) bool {
	_, ok := f.tree[section]
	return ok
}

// at returns where the value at path was written; for a path that is not set itself,
// where the nearest level above it was.
func (f *File) at(path []string) place {
	for n := len(path); n > 0; n-- {
		if p, ok := f.sources[strings.Join(path[:n], separator)]; ok {
			return p
		}
	}
	if len(f.paths) > 0 {
		return place{file: f.paths[0]}
	}
	return place{}
}
