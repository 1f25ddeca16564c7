// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// The settings with their values: Values walks along a decoded struct as the decoder does, into the entries of maps and
// the items of lists of groups too.

// Value is a setting as a program has it.
type Value struct {
	// Key is the dotted path, with the names of the entries of maps: "plugins.witness.path".
	Key string `json:"key"`
	// Text is the value as it would be written in a file. Of a hidden one it is the references that make it, or
	// empty.
	Text string `json:"value"`
	// Hidden says that the value is not shown: it is what a reference stands for, what code outside of the program
	// checks, such as the settings of a plugin, or a setting with the tag hidden:"yes".
	Hidden bool `json:"hidden,omitempty"`
	// Source is where the value was written: file and line, the variable of the environment as "$NAME", or the name
	// of a provider. Empty: nowhere, it is the default.
	Source string `json:"source,omitempty"`
	// Reload says that the setting may change while the program runs, see [Change].
	Reload bool `json:"reload"`

	hash uint64 // Of the whole value, with the seed of this process; 0 when it comes from another one.
}

// Values lists the settings of a struct that the file has filled, sorted by key, or of a map or an any, whose values
// are hidden; a pointer stands for what it points to. Section is the section from which it was filled, "" for the
// whole document. A map, or a list of groups, is as many values as are in its entries, and none if it is empty.
func (f *File) Values(section string, filled any) ([]Value, error) {
	v := reflect.Indirect(reflect.ValueOf(filled))
	if v.Kind() == reflect.Interface && v.IsNil() {
		return nil, nil
	}
	if v.Kind() != reflect.Struct && v.Kind() != reflect.Map && v.Kind() != reflect.Interface {
		return nil, fmt.Errorf("config: values of %T: a struct or a map is needed", filled)
	}
	if err := checkType(v.Type(), nil, 0); err != nil {
		return nil, fmt.Errorf("config: values of %T: %w", filled, err)
	}
	var path []string
	if section != "" {
		path = []string{section}
	}
	w := valueLister{file: f}
	w.list(v, path, false, v.Kind() != reflect.Struct)
	slices.SortFunc(w.values, func(a, b Value) int { return cmp.Compare(a.Key, b.Key) })
	return w.values, nil
}

// valueLister collects values.
type valueLister struct {
	file   *File
	values []Value
}

// list lists what is in a value. Reload and hidden are those of the groups around it.
func (w *valueLister) list(v reflect.Value, path []string, reload, hidden bool) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			w.add(path, "none", reload, hidden)
			return
		}
		hidden = hidden || v.Kind() == reflect.Interface
		v = v.Elem()
	}
	switch typ := typeOf(v.Type()); {
	case typ == TypeGroup:
		for _, s := range fieldsOf(v.Type()) {
			w.list(v.FieldByIndex(s.index), extend(path, s.key), reload || s.tag.Get("reload") == "yes", hidden || s.tag.Get("hidden") == "yes")
		}
	case typ == TypeMap:
		for _, name := range v.MapKeys() {
			w.list(v.MapIndex(name), extend(path, name.String()), reload, hidden)
		}
	case typ == TypeList && typeOf(v.Type().Elem()) == TypeGroup:
		for i := range v.Len() {
			w.list(v.Index(i), item(path, i), reload, hidden)
		}
	default:
		w.add(path, written(v), reload, hidden)
	}
}

func (w *valueLister) add(path []string, text string, reload, hidden bool) {
	value := Value{Key: display(path), Text: text, Hidden: hidden, Source: w.file.source(path), Reload: reload, hash: maphash.String(seed, text)}
	if value.Hidden {
		value.Text = ""
	}
	var names []string
	for _, s := range w.file.secrets {
		if s.key == value.Key || strings.HasPrefix(s.key, value.Key+"[") || strings.HasPrefix(value.Key, s.key+".") {
			names = append(names, s.name)
		}
	}
	if len(names) > 0 {
		value.Text, value.Hidden = strings.Join(names, " "), true
	}
	w.values = append(w.values, value)
}

// source returns where a value was written, "" if nowhere.
func (f *File) source(path []string) string {
	value := any(f.tree)
	for _, part := range path {
		known := false
		switch above := value.(type) {
		case map[string]any:
			value, known = above[part]
		case []any:
			i, err := strconv.Atoi(strings.Trim(part, "[]"))
			if known = err == nil && i >= 0 && i < len(above); known {
				value = above[i]
			}
		}
		if !known {
			return ""
		}
	}
	return f.at(path).String()
}

// seed is random, so that a hash tells nobody what a value is.
var seed = maphash.MakeSeed() //nolint:gochecknoglobals // Values of one process are compared.

// Difference is a setting that has not the same value in two lists.
type Difference struct {
	Key  string `json:"key"`
	From *Value `json:"from,omitempty"` // Nil if the list does not have it.
	To   *Value `json:"to,omitempty"`
}

// Reload reports whether the setting may change while the program runs.
func (d Difference) Reload() bool {
	return d.To != nil && d.To.Reload || d.From != nil && d.From.Reload
}

// Compare lists the settings that differ in two results of [File.Values]. Hidden values of which one comes from another
// process cannot be compared: their keys are the second result. Both are sorted.
func Compare(from, to []Value) (differ []Difference, unknown []string) {
	values := map[string]*Difference{}
	var keys []string
	at := func(key string) *Difference {
		if values[key] == nil {
			values[key] = &Difference{Key: key}
			keys = append(keys, key)
		}
		return values[key]
	}
	for i := range from {
		at(from[i].Key).From = &from[i]
	}
	for i := range to {
		at(to[i].Key).To = &to[i]
	}
	slices.Sort(keys)
	for _, key := range keys {
		switch d := values[key]; {
		case d.From == nil || d.To == nil || !d.From.Hidden && !d.To.Hidden && d.From.Text != d.To.Text:
			differ = append(differ, *d)
		case !d.From.Hidden && !d.To.Hidden:
		case d.From.hash == 0 || d.To.hash == 0:
			unknown = append(unknown, key)
		case d.From.hash != d.To.hash:
			differ = append(differ, *d)
		}
	}
	return differ, unknown
}

// String returns the file and, if it is known, the line.
func (p place) String() string {
	if p.line == 0 {
		return p.file
	}
	return p.file + ":" + strconv.Itoa(p.line)
}
