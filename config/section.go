// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
)

// Section is a section of a document that stands beside those of the struct for the
// whole document, such as one of a program that embeds another.
type Section struct {
	// Name is the key at the top of the document: words of lower-case letters and
	// digits, joined by hyphens, so that variables of the environment reach what is in
	// it.
	Name string

	// Into is a pointer to a struct that holds the defaults, as for [File.Decode]. A
	// pointer to an any takes whatever the section holds: for a section that somebody
	// else checks.
	Into any
}

// DecodeAll is [File.Decode] of the whole document, of which some sections have structs
// of their own. The faults of all come together, and either all targets are filled or
// none. A name that the struct for the whole document has, one that is given twice, and
// one that no section can have, are faults of the program, and ordinary errors.
func (f *File) DecodeAll(into any, beside ...Section) error {
	return f.decode(Section{Into: into}, beside)
}

// target is what a section is decoded into.
type target struct {
	name  string        // Empty for the whole document.
	into  reflect.Value // The pointer that the caller gave.
	fresh reflect.Value // A copy of what it points to: the defaults, and then what was read.
}

// newTarget returns the target of a section, with its defaults.
func newTarget(s Section) (target, error) {
	into := reflect.ValueOf(s.Into)
	if into.Kind() != reflect.Pointer || into.IsNil() {
		return target{}, fmt.Errorf("config: decode into %T: a pointer to a struct or map is needed", s.Into)
	}
	t := into.Type().Elem()
	if t.Kind() != reflect.Struct && t.Kind() != reflect.Map && t != reflect.TypeFor[any]() {
		return target{}, fmt.Errorf("config: decode into %T: a pointer to a struct or map is needed", s.Into)
	}
	if err := checkType(t, nil, 0); err != nil {
		return target{}, fmt.Errorf("config: decode into %T: %w", s.Into, err)
	}
	fresh := reflect.New(t).Elem()
	fresh.Set(into.Elem())
	return target{name: s.Name, into: into, fresh: fresh}, nil
}

// path returns the path of the target in the document.
func (t target) path() []string {
	if t.name == "" {
		return nil
	}
	return []string{t.name}
}

// sectionName is the form of a name that a variable of the environment can reach.
const sectionName = `^[a-z][a-z0-9]*(-[a-z0-9]+)*$`

// besides returns the target of a section beside those of main and those before it.
func (d *decoder) besides(main target, s Section) (target, error) {
	if ok, err := regexp.MatchString(sectionName, s.Name); !ok || err != nil || s.Name == includeKey {
		return target{}, fmt.Errorf("config: %q cannot be the name of a section: it is words of lower-case letters and digits, joined by hyphens, and not %s", s.Name, includeKey)
	}
	if main.fresh.Kind() != reflect.Struct {
		return target{}, fmt.Errorf("config: decode into %v: sections stand beside those of a struct", main.into.Type())
	}
	taken := slices.ContainsFunc(fieldsOf(main.fresh.Type()), func(f setting) bool { return f.key == s.Name })
	if taken || d.besideAt([]string{s.Name}) != nil {
		return target{}, fmt.Errorf("config: there are two sections with the name %q", s.Name)
	}
	t, err := newTarget(s)
	if err != nil {
		return target{}, err
	}
	d.known = append(append(d.known, t.path()), keysOf(t.fresh.Type(), t.path())...)
	return t, nil
}

// besideAt returns the target of a section beside those of the struct for the whole
// document, nil if none has the path.
func (d *decoder) besideAt(path []string) *target {
	if len(path) != 1 {
		return nil
	}
	i := slices.IndexFunc(d.beside, func(t target) bool { return t.name == path[0] })
	if i < 0 {
		return nil
	}
	return &d.beside[i]
}
