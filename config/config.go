// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
)

// Prefix begins the names of all environment variables that override settings.
const Prefix = "QUORATE_"

// separator joins the parts of a path inside koanf. Keys may contain dots
// ("127.0.0.1:7946" is a good key), but never this control character, which the
// document check refuses.
const separator = "\x1f"

// File is the merged content of the files and the environment, with the place
// each value came from. It is immutable.
type File struct {
	paths   []string
	dir     string
	tree    map[string]any
	sources map[string]place // by joined path
	stray   []variable       // environment names without a level separator
}

// place is where a value stands.
type place struct {
	file string
	line int
	env  bool // the value is text, to be read as the type of its setting
}

// A Loader reads files with another environment than that of the process.
type Loader struct {
	// Environ is the environment as "NAME=value", as [os.Environ] returns it; nil
	// means none.
	Environ []string
}

// Load reads and merges the files in order, then the variables of the process's
// environment. At least one path is needed. The error is of type [Errors] and
// names the faults of all files.
func Load(paths ...string) (*File, error) {
	return Loader{Environ: os.Environ()}.Load(paths...)
}

// Load is the function [Load] with the environment of l.
func (l Loader) Load(paths ...string) (*File, error) {
	if len(paths) == 0 {
		return nil, Errors{{Reason: "no configuration file was given", Err: ErrRead}}
	}
	docs := make([]document, 0, len(paths))
	var faults Errors
	for _, path := range paths {
		data, fault := read(path)
		if fault != nil {
			faults = append(faults, fault)
			continue
		}
		doc, errs := scan(path, data)
		faults = append(faults, errs...)
		docs = append(docs, doc)
	}
	dir, err := filepath.Abs(filepath.Dir(paths[0]))
	if err != nil {
		faults = append(faults, &Error{File: paths[0], Reason: err.Error(), Err: ErrRead})
	}
	return merge(docs, l.Environ, dir, faults)
}

// Parse reads one document that is not in a file, under the given name, which
// is used in errors. Dir is empty, and no environment is applied.
func Parse(name string, data []byte) (*File, error) {
	doc, faults := scan(name, data)
	return merge([]document{doc}, nil, "", faults)
}

// merge lays the documents and the environment over one another.
func merge(docs []document, environ []string, dir string, faults Errors) (*File, error) {
	vars, stray, errs := variables(environ)
	faults = append(faults, errs...)
	if len(faults) > 0 {
		return nil, faults
	}
	f := &File{dir: dir, sources: map[string]place{}, stray: stray}
	k := koanf.New(separator)
	for _, doc := range docs {
		if err := k.Load(rawbytes.Provider(doc.data), yaml.Parser()); err != nil {
			return nil, Errors{{File: doc.name, Reason: oneLine(err.Error()), Err: ErrSyntax}}
		}
		f.paths = append(f.paths, doc.name)
		for path, line := range doc.lines {
			f.sources[path] = place{file: doc.name, line: line}
		}
	}
	byName := map[string]variable{}
	lines := make([]string, 0, len(vars))
	for _, v := range vars {
		byName[v.name] = v
		lines = append(lines, v.name+"="+v.value)
		f.sources[strings.Join(v.path, separator)] = place{file: "$" + v.name, env: true}
	}
	overrides := env.Provider(separator, env.Opt{
		EnvironFunc:   func() []string { return lines },
		TransformFunc: func(name, value string) (string, any) { return strings.Join(byName[name].path, separator), value },
	})
	if err := k.Load(overrides, nil); err != nil {
		return nil, Errors{{Reason: oneLine(err.Error()), Err: ErrSyntax}}
	}
	f.tree = k.Raw()
	return f, nil
}

// Dir returns the absolute directory of the first file, to which relative paths
// inside the configuration are relative. It is empty after [Parse].
func (f *File) Dir() string { return f.dir }

// Paths returns the files that were merged, in order.
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

// at returns where the value at path stands; for a path that is not set itself,
// the nearest level above it that is.
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
