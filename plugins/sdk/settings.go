// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/quorate/quorate/plugins"

	"github.com/quorate/quorate/config/field"
)

// Settings are parsed as JSON, written field by field into the author's type with every
// fault collected ([decoder]), and validated by the author's own method
// ([decodeSettings]). What the decoder takes, schema.go writes down for hosts: a change of one
// is a change of the other.

// decodeSettings reads a JSON object into a settings value, from its defaults, and
// validates it. The error is of type [plugins.SettingErrors].
func decodeSettings[S any](text []byte) (S, error) {
	var settings, none S
	if d, ok := any(&settings).(interface{ SetDefaults() }); ok {
		d.SetDefaults()
	}
	d := decoder{}
	if tree, ok := d.parse(text); ok {
		d.value("", tree, reflect.ValueOf(&settings).Elem(), "")
	}
	if len(d.faults) > 0 {
		return none, d.faults
	}
	if v, ok := any(&settings).(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return none, settingErrors(err)
		}
	}
	return settings, nil
}

// settingErrors returns the faults in an error of the plugin's author: joined errors one
// by one, each with the key that it names, if it does.
func settingErrors(err error) plugins.SettingErrors {
	var faults plugins.SettingErrors
	if errors.As(err, &faults) {
		return faults
	}
	for _, one := range field.Parts(err) {
		key, reason := field.Of(one)
		faults = append(faults, plugins.SettingError{Key: key, Reason: reason})
	}
	return faults
}

// decoder writes a tree of JSON into a value, and collects the faults.
type decoder struct{ faults plugins.SettingErrors }

func (d *decoder) fault(key, format string, args ...any) {
	d.faults = append(d.faults, plugins.SettingError{Key: key, Reason: fmt.Sprintf(format, args...)})
}

// parse reads one JSON object; empty text means an empty object.
func (d *decoder) parse(text []byte) (map[string]any, bool) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, true
	}
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.UseNumber()
	var tree map[string]any
	if err := reader.Decode(&tree); err != nil {
		d.fault("", "the settings are no JSON object: %v", err)
		return nil, false
	}
	if _, err := reader.Token(); !errors.Is(err, io.EOF) {
		d.fault("", "the settings are followed by something else")
		return nil, false
	}
	return tree, true
}

// value writes one value to its target. The tags are those of the field; for lists and maps, they are about the items.
func (d *decoder) value(key string, v any, target reflect.Value, tags reflect.StructTag) {
	if v == nil {
		d.fault(key, "has no value")
		return
	}
	if isDuration(target.Type()) {
		d.duration(key, v, target, tags)
		return
	}
	if allowed := words(tags.Get("oneof")); isText(target.Type()) && len(allowed) > 0 && !slices.Contains(allowed, fmt.Sprint(v)) {
		d.fault(key, "%s is none of %s", show(v), strings.Join(allowed, ", "))
		return
	}
	if u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](target.Addr()); ok {
		d.text(key, v, u)
		return
	}
	switch target.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(target.Type().Elem())
		d.value(key, v, fresh.Elem(), tags)
		target.Set(fresh)
	case reflect.Struct:
		d.structure(key, v, target)
	case reflect.Map:
		d.mapping(key, v, target, tags)
	case reflect.Slice:
		d.list(key, v, target, tags)
	default:
		d.scalar(key, v, target, tags)
	}
}

func (d *decoder) duration(key string, v any, target reflect.Value, tags reflect.StructTag) {
	text, ok := v.(string)
	duration, err := time.ParseDuration(text)
	if !ok || err != nil {
		d.fault(key, "%s is no duration such as 3s or 500ms", show(v))
		return
	}
	target.SetInt(int64(duration))
	d.inRange(key, v, float64(duration), tags)
}

// inRange reports a number, or a duration in nanoseconds, that is not in the range of its tag.
func (d *decoder) inRange(key string, v any, n float64, tags reflect.StructTag) {
	if r := rangeOf(tags); !r.Has(n) {
		d.fault(key, "%s is not %v", show(v), r)
	}
}

// rangeOf returns the range of a tag. It panics on one that is no range, as [field.Ranges] does.
func rangeOf(tags reflect.StructTag) field.Range {
	r, err := field.ParseRange(tags.Get("range"))
	if err != nil {
		panic(err)
	}
	return r
}

// words splits a tag at its bars; nil if it is empty.
func words(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, "|")
}

func isDuration(t reflect.Type) bool { return t == reflect.TypeFor[time.Duration]() }

// isText reports whether values of a type are written as text, of which a tag may permit some.
func isText(t reflect.Type) bool {
	return t.Kind() == reflect.String || reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func (d *decoder) text(key string, v any, target encoding.TextUnmarshaler) {
	text, ok := v.(string)
	if !ok {
		d.fault(key, "%s is no text", show(v))
		return
	}
	if err := target.UnmarshalText([]byte(text)); err != nil {
		d.fault(key, "%s: %v", show(v), err)
	}
}

// structure writes an object to the fields of a struct.
func (d *decoder) structure(key string, v any, target reflect.Value) {
	tree, ok := v.(map[string]any)
	if !ok {
		d.fault(key, "%s is no group of settings", show(v))
		return
	}
	fields := fieldsOf(target.Type())
	for _, name := range sortedKeys(tree) {
		f, ok := fields[name]
		if !ok {
			d.fault(join(key, name), "is unknown; %s", known(fields))
			continue
		}
		d.value(join(key, name), tree[name], target.FieldByIndex(f.Index), f.Tag)
	}
	for _, name := range sortedKeys(fields) {
		if _, given := tree[name]; !given && required(fields[name]) {
			d.fault(join(key, name), "must be set")
		}
	}
}

func required(f reflect.StructField) bool { return f.Tag.Get("required") == "yes" }

func known(fields map[string]reflect.StructField) string {
	if len(fields) == 0 {
		return "there are no settings here"
	}
	return "there are " + strings.Join(sortedKeys(fields), ", ")
}

func (d *decoder) mapping(key string, v any, target reflect.Value, tags reflect.StructTag) {
	tree, ok := v.(map[string]any)
	if !ok || target.Type().Key().Kind() != reflect.String {
		d.fault(key, "%s is no group of names", show(v))
		return
	}
	fresh := reflect.MakeMapWithSize(target.Type(), len(tree))
	for _, name := range sortedKeys(tree) {
		entry := reflect.New(target.Type().Elem()).Elem()
		d.value(join(key, name), tree[name], entry, tags)
		fresh.SetMapIndex(reflect.ValueOf(name).Convert(target.Type().Key()), entry)
	}
	target.Set(fresh)
}

func (d *decoder) list(key string, v any, target reflect.Value, tags reflect.StructTag) {
	items, ok := v.([]any)
	if !ok {
		d.fault(key, "%s is no list", show(v))
		return
	}
	fresh := reflect.MakeSlice(target.Type(), len(items), len(items))
	for i, item := range items {
		d.value(key+"["+strconv.Itoa(i)+"]", item, fresh.Index(i), tags)
	}
	target.Set(fresh)
}

// scalar leaves to encoding/json which numbers fit into which type.
func (d *decoder) scalar(key string, v any, target reflect.Value, tags reflect.StructTag) {
	written := v
	if n, ok := v.(json.Number); ok && (target.CanInt() || target.CanUint()) {
		written = whole(n)
	}
	text, err := json.Marshal(written)
	if err != nil {
		d.fault(key, "%s: %v", show(v), err)
		return
	}
	if err := json.Unmarshal(text, target.Addr().Interface()); err != nil {
		d.fault(key, "%s is no %s", show(v), describe(target.Type()))
		return
	}
	switch {
	case target.CanInt():
		d.inRange(key, v, float64(target.Int()), tags)
	case target.CanUint():
		d.inRange(key, v, float64(target.Uint()), tags)
	case target.CanFloat():
		d.inRange(key, v, target.Float(), tags)
	}
}

// whole returns a whole number that is written as no integer of Go is, such as 2.0, 1e3 and -0, as one; others as
// they are. JSON has one type of numbers.
func whole(n json.Number) json.Number {
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<64 || f != 0 && !strings.ContainsAny(n.String(), ".eE") {
		return n
	}
	return json.Number(strconv.FormatFloat(f+0, 'f', -1, 64)) // -0 and 0 is 0.
}

// describe names what a value must be, for people who do not write Go.
func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("whole number of %d bits", t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("whole number of %d bits from 0", t.Bits())
	default:
		return t.String()
	}
}

const maxShown = 100

// show prints a value as it was given, shortened.
func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("a value of type %T", v)
	}
	if len(text) > maxShown {
		return strings.ToValidUTF8(string(text[:maxShown]), "") + "..."
	}
	return string(text)
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// fieldsOf maps the keys of a struct to its fields, those of embedded structs included. The fields of an embedded
// pointer are a group of their own, by the name of its type: there may be nothing that it points to.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := make(map[string]reflect.StructField)
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || behindPointer(t, f) || f.Anonymous && f.Type.Kind() == reflect.Struct && name == "" {
			continue
		}
		if name == "" {
			name = kebab(f.Name)
		}
		fields[name] = f
	}
	return fields
}

// behindPointer reports whether a field is that of an embedded pointer.
func behindPointer(t reflect.Type, f reflect.StructField) bool {
	for _, i := range f.Index[:len(f.Index)-1] {
		if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}

// kebab writes a name in lower case with hyphens: BaseURL is base-url.
func kebab(name string) string {
	runes := []rune(name)
	var b strings.Builder
	for i, r := range runes {
		begins := i > 0 && unicode.IsUpper(r) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if begins {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
