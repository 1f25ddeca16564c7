// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/config/field"
)

// The settings of a struct: Settings walks along its fields, reads their tags, and
// writes their values as they would be in a file. The walk is that of the decoder, so
// that every listed key can be set.

// Type is the type of a setting's value in a file.
type Type uint8

// The types of settings.
const (
	// TypeAny is a value that other code checks, such as the settings of a plugin.
	TypeAny Type = iota
	// TypeText is text.
	TypeText
	// TypeBool is true or false.
	TypeBool
	// TypeWhole is a whole number.
	TypeWhole
	// TypeNumber is a number.
	TypeNumber
	// TypeDuration is a duration, such as "500ms" or "1h30m".
	TypeDuration
	// TypeList is a list of values of one type.
	TypeList
	// TypeMap is a map whose keys users choose.
	TypeMap
	// TypeGroup is a group of settings.
	TypeGroup
	// TypeTexts is text, or a list of text: the type of a list of strings that has a method
	// UnmarshalText.
	TypeTexts
)

// String returns the name of the type in plain words.
func (k Type) String() string {
	names := [...]string{"any value", "text", "true or false", "whole number", "number", "duration", "list", "map", "group", "text or list of text"}
	if int(k) >= len(names) {
		return "Type(" + strconv.Itoa(int(k)) + ")"
	}
	return names[k]
}

// Setting describes one key of a struct.
type Setting struct {
	// Path holds the parts of the key. "*" stands for a name that users choose,
	// and "[]" for any item of a list of groups.
	Path []string
	// Type is the type of the value.
	Type Type
	// Item is the type of the items of a list and of the entries of a map; for other
	// types it has no meaning. If the items are groups, their settings follow with
	// longer paths.
	Item Type
	// Default is the default as it would be written in a file; empty for groups and
	// for a setting without a default.
	Default string
	// Unit is the tag unit: what a number counts, such as "bytes".
	Unit string
	// Range is the tag range: the values that a number may have, in the form of
	// [field.ParseRange].
	Range string
	// OneOf is the tag oneof: the only values that a text may have.
	OneOf []string
	// Known is the tag known: values with a special meaning, such as the names of
	// built-in strategies; other values are possible.
	Known []string
	// Required is the tag required:"yes": there is no default, and a program
	// cannot start without the setting.
	Required bool
	// Reload is the tag reload:"yes", of the field or of a group around it: the
	// setting may change while the program runs.
	Reload bool
	// Meaning is the tag meaning: the description for people. The settings of Quorate
	// itself have comments instead, from which their reference is made.
	Meaning string
	// Struct and Field are where the setting is declared. For groups that are entries
	// of maps or items of lists, Struct is their type, and Field is empty.
	Struct reflect.Type
	Field  string
}

// Key returns the dotted path.
func (s Setting) Key() string { return display(s.Path) }

// Settings lists every setting of the struct, or of the struct to which the pointer
// points. The values in the struct are the defaults. The order is that of the
// declarations; a group comes before its settings. The error names a field of a type
// that no document could fill, or a bad tag.
func Settings(defaults any) ([]Setting, error) {
	v := reflect.ValueOf(defaults)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil, fmt.Errorf("config: settings of %T: a struct is needed", defaults)
	}
	if err := checkType(v.Type(), nil, 0); err != nil {
		return nil, fmt.Errorf("config: settings of %T: %w", defaults, err)
	}
	var l lister
	l.structure(v, Setting{})
	if l.err != nil {
		return nil, fmt.Errorf("config: settings of %T: %w", defaults, l.err)
	}
	return l.settings, nil
}

// lister collects the settings of a struct.
type lister struct {
	settings []Setting
	err      error
}

// structure lists the fields of a struct. Above is the setting of the struct itself.
func (l *lister) structure(v reflect.Value, above Setting) {
	for _, f := range fieldsOf(v.Type()) {
		s := Setting{
			Path: extend(above.Path, f.key), Unit: f.tag.Get("unit"), Range: f.tag.Get("range"), Meaning: f.tag.Get("meaning"),
			OneOf: words(f.tag.Get("oneof")), Known: words(f.tag.Get("known")),
			Required: f.tag.Get("required") == "yes", Reload: above.Reload || f.tag.Get("reload") == "yes",
			Struct: f.parent, Field: f.name,
		}
		if _, err := field.ParseRange(s.Range); err != nil && l.err == nil {
			l.err = fmt.Errorf("%s: %w", s.Key(), err)
		}
		l.value(v.FieldByIndex(f.index), s)
	}
}

// value lists one setting and the settings in it.
func (l *lister) value(v reflect.Value, s Setting) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v = reflect.Zero(v.Type().Elem())
			s.Default = "none"
			continue
		}
		v = v.Elem()
	}
	if s.Type = typeOf(v.Type()); s.Default == "" && !s.Required {
		s.Default = written(v)
	}
	switch s.Type {
	case TypeGroup:
		s.Default = ""
		l.settings = append(l.settings, s)
		l.structure(v, s)
		return
	case TypeMap, TypeList:
		entry, name := newEntry(v.Type().Elem()), "*"
		if s.Type == TypeList {
			name = "[]"
		}
		s.Item = typeOf(entry.Type())
		l.settings = append(l.settings, s)
		if s.Item == TypeGroup {
			l.value(entry, Setting{Path: extend(s.Path, name), Reload: s.Reload, Struct: entry.Type()})
		}
		return
	default:
		l.settings = append(l.settings, s)
	}
}

// typeOf returns the Type of a Go type.
func typeOf(t reflect.Type) Type {
	if t.Kind() == reflect.Pointer {
		return typeOf(t.Elem())
	}
	if reflect.PointerTo(t).Implements(textType) {
		if isTexts(t) {
			return TypeTexts
		}
		return TypeText
	}
	if t == durationType {
		return TypeDuration
	}
	switch t.Kind() {
	case reflect.Struct:
		return TypeGroup
	case reflect.Map:
		return TypeMap
	case reflect.Slice:
		return TypeList
	case reflect.String:
		return TypeText
	case reflect.Bool:
		return TypeBool
	case reflect.Float32, reflect.Float64:
		return TypeNumber
	case reflect.Interface:
		return TypeAny
	default:
		return TypeWhole
	}
}

// written returns a value as it would be written in a file.
func written(v reflect.Value) string {
	if m, ok := reflect.TypeAssert[encoding.TextMarshaler](v); ok && reflect.PointerTo(v.Type()).Implements(textType) {
		if text, err := m.MarshalText(); err == nil {
			return string(text)
		}
	}
	switch typeOf(v.Type()) {
	case TypeDuration:
		return durationText(time.Duration(v.Int()))
	case TypeText:
		if v.Kind() != reflect.String {
			return fmt.Sprint(v.Interface())
		}
		if s := v.String(); s != "" {
			return s
		}
		return `""`
	case TypeTexts:
		if v.Len() == 0 {
			return `""`
		}
		fallthrough
	case TypeList:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = written(v.Index(i))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case TypeMap:
		entries := make([]string, 0, v.Len())
		for _, name := range v.MapKeys() {
			entries = append(entries, name.String()+": "+written(v.MapIndex(name)))
		}
		slices.Sort(entries)
		return "{" + strings.Join(entries, ", ") + "}"
	case TypeGroup:
		return ""
	case TypeAny:
		return "none"
	default:
		return fmt.Sprint(v.Interface())
	}
}

// durationText returns a duration without the zeros that [time.Duration.String]
// ends with: "2m" for "2m0s".
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// words splits a tag at its bars; nil if it is empty.
func words(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, "|")
}
