// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
)

// Section is a section of a document beside the struct for the whole document, for
// instance a section of a program that embeds another.
type Section struct {
	// Name is the key at the top of the document: words of lower-case letters and
	// digits, joined by hyphens, so that environment variables can override the
	// settings in the section.
	Name string

	// Into is a pointer to a struct that holds the defaults, as for [File.Decode]. A
	// pointer to an any takes the section unchecked, for a section that other code
	// checks.
	Into any

	// Chosen are the keys by whose values the section is needed, such as that of the name of a store. A fault of a section
	// that is not there stands where the first of them is that is set.
	Chosen []string
}

// DecodeAll is [File.Decode] of the whole document, of which some sections have
// structs of their own. The faults of all sections come together, and either all
// targets are filled or none. A name that is a field of into, a name that is given
// twice, and a name that no section can have are faults of the program, and ordinary
// errors.
func (f *File) DecodeAll(into any, beside ...Section) error {
	return f.decode(Section{Into: into}, beside)
}

// target is the value into which a section is decoded.
type target struct {
	name  string        // Empty for the whole document.
	into  reflect.Value // The caller's pointer.
	fresh reflect.Value // A copy of the pointed value: the defaults, overwritten by decoding.

	chosen []string
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
	return target{name: s.Name, into: into, fresh: fresh, chosen: s.Chosen}, nil
}

// path returns the path of the target in the document.
func (t target) path() []string {
	if t.name == "" {
		return nil
	}
	return []string{t.name}
}

// sectionName matches the names of sections that environment variables can reach.
const sectionName = `^[a-z][a-z0-9]*(-[a-z0-9]+)*$`

// besides returns the target of a section beside main, after checking that its name is
// free.
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

// besideAt returns the target of the section beside the struct for the whole document
// that has the path, or nil.
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
