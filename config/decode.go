// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Decoding: decode fills targets with the values of a document, collects every fault,
// validates, and stores the result only without faults. The decoder walks along the
// target's Go type, one method a kind of type. At the end, what the types of targets
// may be, and the keys that they have.

// Decode overwrites the defaults in the struct (or map) that into points to with the
// values of one section, then validates the result. The section "" is the whole
// document: into is then a struct with a field for each section, and a section that it
// does not have is an error. If the section is absent, its defaults are validated.
//
// The error is of type [Errors] and names every fault; into is then unchanged. A
// target that is not a pointer to a struct or map, or that has a field of a type that
// this package does not know, is a fault of the program and is reported as an ordinary
// error.
func (f *File) Decode(section string, into any) error {
	return f.decode(Section{Name: section, Into: into}, nil)
}

// decode fills one section, or the whole document and the sections beside it.
func (f *File) decode(first Section, beside []Section) error {
	d := decoder{file: f}
	main, err := newTarget(first)
	if err != nil {
		return err
	}
	d.known = keysOf(main.fresh.Type(), main.path())
	for _, s := range beside {
		t, err := d.besides(main, s)
		if err != nil {
			return err
		}
		d.beside = append(d.beside, t)
	}
	value := any(f.tree)
	if first.Name != "" {
		value = f.tree[first.Name]
	}
	if value != nil {
		d.value(main.fresh, value, main.path())
	}
	for _, v := range f.stray {
		if fault := v.misspelt(d.known); fault != nil {
			d.faults = append(d.faults, fault)
		}
	}
	d.validate(main.fresh, main.path())
	if err := sorted(f.hide(d.faults), f.paths).orNil(); err != nil {
		return err
	}
	for _, t := range append(d.beside, main) {
		t.into.Elem().Set(t.fresh)
	}
	return nil
}

// sorted orders faults by file in the order given, the environment last, then by line
// and key, and drops repetitions.
func sorted(faults Errors, paths []string) Errors {
	rank := func(file string) int {
		if i := slices.Index(paths, file); i >= 0 {
			return i
		}
		return len(paths)
	}
	slices.SortStableFunc(faults, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(rank(a.File), rank(b.File)), cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.CompactFunc(faults, func(a, b *Error) bool { return a.Error() == b.Error() })
}

// decoder writes a tree of values into a value of a Go type.
type decoder struct {
	file   *File
	beside []target // Sections beside the struct for the whole document.
	known  [][]string
	faults Errors

	related map[*Error][]string // The other keys that faults of validators are about.
}

func (d *decoder) fault(path []string, class error, reason string) {
	where := d.file.at(path)
	d.faults = append(d.faults, &Error{File: where.file, Line: where.line, Key: display(path), Reason: reason, Err: class})
}

// value decodes one value. The target holds its default; maps and pointers in the
// target are copied before they are changed, since the caller still owns them.
func (d *decoder) value(target reflect.Value, value any, path []string) {
	asText := false
	if p, ok := d.file.sources[strings.Join(path, separator)]; ok {
		asText = p.text
	}
	if value = plain(value); value == nil {
		d.null(target, path)
		return
	}
	if text, ok := value.(string); ok && asText && isCompound(target.Type()) {
		d.compoundText(target, text, path)
		return
	}
	if target.Kind() != reflect.Pointer && target.CanAddr() {
		if u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](target.Addr()); ok {
			if _, several := value.([]any); several && isTexts(target.Type()) {
				d.list(target, value, path)
				return
			}
			d.text(u, target.Type(), value, path)
			return
		}
	}
	switch target.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(target.Type().Elem())
		if !target.IsNil() {
			fresh.Elem().Set(target.Elem())
		}
		d.value(fresh.Elem(), value, path)
		target.Set(fresh)
	case reflect.Struct:
		d.structure(target, value, path)
	case reflect.Map:
		d.mapping(target, value, path)
	case reflect.Slice:
		d.list(target, value, path)
	case reflect.Interface:
		target.Set(reflect.ValueOf(free(value, asText)))
	default:
		if reason := setScalar(target, value, asText); reason != "" {
			d.fault(path, ErrBadValue, reason)
		}
	}
}

// null handles a key without a value. For a section that means its defaults, and is
// common while a file is being written; for other settings it is probably a mistake.
func (d *decoder) null(target reflect.Value, path []string) {
	compound := target.Kind() == reflect.Struct || target.Kind() == reflect.Map
	if len(path) > 1 && !compound && target.Kind() != reflect.Interface {
		d.fault(path, ErrBadValue, "has no value, give one or remove the line")
	}
}

// isCompound reports whether values of the type consist of several values.
func isCompound(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		return isCompound(t.Elem())
	}
	if reflect.PointerTo(t).Implements(textType) {
		return false
	}
	return t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Struct
}

// compoundText decodes a text, such as that of a variable, into a list. Maps are refused.
func (d *decoder) compoundText(target reflect.Value, text string, path []string) {
	t := target.Type()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Slice {
		reason := "is a group of settings, and cannot be one text"
		if strings.HasPrefix(d.file.at(path).file, "$") {
			reason = "is a group of settings, which have variables of their own"
		}
		d.fault(path, ErrBadValue, reason)
		return
	}
	items, reason := splitList(text)
	if reason != "" {
		d.fault(path, ErrBadValue, reason)
		return
	}
	fresh := reflect.MakeSlice(t, len(items), len(items))
	for i, item := range items {
		if isCompound(t.Elem()) {
			d.fault(path, ErrBadValue, "is a list of groups, which cannot be set by one text")
			return
		}
		e := decoder{file: &File{sources: map[string]place{"": {text: true}}}}
		e.value(fresh.Index(i), item, nil)
		for _, fault := range e.faults {
			d.fault(path, fault.Err, fmt.Sprintf("item %d: %s", i+1, fault.Reason))
		}
	}
	if target.Kind() == reflect.Pointer {
		target.Set(reflect.New(t))
		target = target.Elem()
	}
	target.Set(fresh)
}

// isTexts reports whether a type that is read from text is a list of texts: one of them may be
// written without the list.
func isTexts(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String
}

// splitList parses a list in a variable: items between commas, or a YAML list in
// brackets when the items themselves have commas. An address of version 6 begins with a bracket too, so what is no
// list in brackets is one of items, if each has as many brackets that open as close.
func splitList(text string) (items []string, reason string) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, ""
	}
	bracket := strings.HasPrefix(text, "[")
	if bracket && strings.HasSuffix(text, "]") && yaml.Unmarshal([]byte(text), &items) == nil {
		return items, ""
	}
	items = nil // A text that cannot be parsed may have left some.
	for item := range strings.SplitSeq(text, ",") {
		switch item = strings.TrimSpace(item); {
		case bracket && strings.Count(item, "[") != strings.Count(item, "]"):
			return nil, fmt.Sprintf("%q is not a list: write a,b or [\"a\", \"b\"]", short(text))
		case item == "":
			return nil, fmt.Sprintf("%q is not a list: there is nothing between two commas", short(text))
		}
		items = append(items, item)
	}
	return items, ""
}

// free returns the value for a field of type any: text from the environment is parsed
// as a YAML scalar, so that a number becomes one.
func free(value any, asText bool) any {
	text, ok := value.(string)
	if !ok || !asText {
		return value
	}
	var node yaml.Node
	var out any
	if err := yaml.Unmarshal([]byte(text), &node); err == nil && len(node.Content) == 1 && node.Content[0].Kind == yaml.ScalarNode {
		if err := node.Decode(&out); err == nil && out != nil {
			return out
		}
	}
	return text
}

func (d *decoder) text(u encoding.TextUnmarshaler, t reflect.Type, value any, path []string) {
	text, ok := value.(string)
	if !ok {
		need := "text (" + t.String() + ")"
		if isTexts(t) {
			need = "text, or a list of text"
		}
		d.fault(path, ErrBadValue, wrongType(need, value))
		return
	}
	if err := u.UnmarshalText([]byte(text)); err != nil {
		d.fault(path, ErrBadValue, fmt.Sprintf("bad value %q: %s", short(text), oneLine(err.Error())))
	}
}

func (d *decoder) structure(target reflect.Value, value any, path []string) {
	tree, ok := value.(map[string]any)
	if !ok {
		d.fault(path, ErrBadValue, wrongType("a group of settings", value))
		return
	}
	fields := fieldsOf(target.Type())
	for _, key := range sortedKeys(tree) {
		at := extend(path, key)
		i := slices.IndexFunc(fields, func(f setting) bool { return f.key == key })
		if i < 0 {
			d.besideOrUnknown(at, tree[key], fields)
			continue
		}
		d.value(target.FieldByIndex(fields[i].index), tree[key], at)
	}
}

// besideOrUnknown decodes a key that is no field of the struct: the section beside it,
// or an unknown key.
func (d *decoder) besideOrUnknown(path []string, value any, fields []setting) {
	if t := d.besideAt(path); t != nil {
		d.value(t.fresh, value, path)
		return
	}
	d.unknown(path, fields)
}

func (d *decoder) unknown(path []string, fields []setting) {
	siblings := make([]string, len(fields))
	for i, f := range fields {
		siblings[i] = f.key
	}
	what := "unknown key"
	if len(path) == 1 {
		what = "unknown section"
		for _, t := range d.beside {
			siblings = append(siblings, t.name)
		}
	}
	d.fault(path, ErrUnknownKey, what)
	fault := d.faults[len(d.faults)-1]
	fault.Nearest = nearest(path, siblings, d.known)
	const listed = 12 // more would bury the other faults
	if fault.Nearest == "" && len(siblings) > 0 && len(siblings) <= listed {
		slices.Sort(siblings)
		fault.Reason += ", known here: " + strings.Join(siblings, ", ")
	}
}

func (d *decoder) mapping(target reflect.Value, value any, path []string) {
	tree, ok := value.(map[string]any)
	if !ok {
		d.fault(path, ErrBadValue, wrongType("a map", value))
		return
	}
	entries := reflect.MakeMapWithSize(target.Type(), target.Len()+len(tree))
	for old := target.MapRange(); old.Next(); {
		entries.SetMapIndex(old.Key(), old.Value())
	}
	for _, key := range sortedKeys(tree) {
		name := reflect.ValueOf(key).Convert(target.Type().Key())
		entry := newEntry(target.Type().Elem())
		if old := entries.MapIndex(name); old.IsValid() {
			entry.Set(old)
		}
		d.value(entry, tree[key], extend(path, key))
		entries.SetMapIndex(name, entry)
	}
	target.Set(entries)
}

func (d *decoder) list(target reflect.Value, value any, path []string) {
	items, ok := value.([]any)
	if !ok {
		d.fault(path, ErrBadValue, wrongType("a list", value)+", write [a, b]")
		return
	}
	fresh := reflect.MakeSlice(target.Type(), len(items), len(items))
	for i, one := range items {
		at := item(path, i)
		if one == nil {
			d.fault(at, ErrBadValue, "is empty")
			continue
		}
		fresh.Index(i).Set(newEntry(target.Type().Elem()))
		d.value(fresh.Index(i), one, at)
	}
	target.Set(fresh)
}

// defaulter is implemented by entries of maps and groups in lists that have defaults.
// SetDefaults is called on a pointer to a new entry before it is decoded.
type defaulter interface{ SetDefaults() }

// newEntry returns a new entry of a map or list, with its defaults.
func newEntry(t reflect.Type) reflect.Value {
	v := reflect.New(t)
	if d, ok := reflect.TypeAssert[defaulter](v); ok {
		d.SetDefaults()
	}
	return v.Elem()
}

// plain returns a map that YAML read with keys other than text (1: x) as one with keys
// of text.
func plain(value any) any {
	m, ok := value.(map[any]any)
	if !ok {
		return value
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[fmt.Sprint(k)] = v
	}
	return out
}

func sortedKeys(tree map[string]any) []string {
	keys := make([]string, 0, len(tree))
	for key := range tree {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// setting is one settable field of a struct.
type setting struct {
	key    string
	index  []int
	typ    reflect.Type
	tag    reflect.StructTag
	parent reflect.Type // the struct that declares the field
	name   string       // the name of the field
}

// fieldsOf lists the settable fields of a struct, those of squashed structs
// included.
func fieldsOf(t reflect.Type) []setting {
	var out []setting
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("koanf"), ",")
		if rest == "squash" && f.Type.Kind() == reflect.Struct {
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				out = append(out, inner)
			}
			continue
		}
		if name != "" && name != "-" && f.IsExported() {
			out = append(out, setting{key: name, index: []int{i}, typ: f.Type, tag: f.Tag, parent: t, name: f.Name})
		}
	}
	return out
}

var (
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]() //nolint:gochecknoglobals // A constant that Go cannot write as one.
	durationType = reflect.TypeFor[time.Duration]()            //nolint:gochecknoglobals // As above.
)

var errType = errors.New("unsupported type")

// checkType refuses types that no document could fill, at the first decode and not
// only when a user happens to set the key.
func checkType(t reflect.Type, path []string, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("%s: %w: a type that contains itself", display(path), errType)
	}
	if reflect.PointerTo(t).Implements(textType) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		for _, f := range fieldsOf(t) {
			if err := checkType(f.typ, extend(path, f.key), depth+1); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return fmt.Errorf("%s: %w: a map with keys of type %s", display(path), errType, t.Key())
		}
		return checkType(t.Elem(), extend(path, "*"), depth+1)
	case reflect.Slice, reflect.Pointer:
		return checkType(t.Elem(), path, depth+1)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return nil
		}
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return nil
	default:
	}
	return fmt.Errorf("%s: %w %s", display(path), errType, t)
}

// keysOf returns the path of every setting of a type, for suggestions. Names that
// users choose are left out.
func keysOf(t reflect.Type, path []string) [][]string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(textType) {
		return nil
	}
	var out [][]string
	for _, f := range fieldsOf(t) {
		at := extend(path, f.key)
		out = append(out, at)
		out = append(out, keysOf(f.typ, at)...)
	}
	return out
}
