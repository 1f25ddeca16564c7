// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/config/field"
)

// The schema of the settings says to hosts, before they configure the plugin, what the decoder takes: [schemaOf] walks
// along the type of the settings as [decoder] does, with the same keys and the same tags. It does not know what
// Validate and the methods UnmarshalText refuse.

// object is a part of a JSON Schema.
type object = map[string]any

// schemaOf returns the schema of settings of type S: that of the author, if S has a method JSONSchema that returns one,
// and otherwise one that is made of the type, the tags and the defaults.
func schemaOf[S any]() ([]byte, error) {
	var settings S
	if own, ok := any(&settings).(interface{ JSONSchema() []byte }); ok {
		if text := own.JSONSchema(); len(text) > 0 {
			return text, nil
		}
	}
	if d, ok := any(&settings).(interface{ SetDefaults() }); ok {
		d.SetDefaults()
	}
	s := schemaBuilder{open: map[reflect.Type]string{}, defs: object{}}
	root := s.value(reflect.ValueOf(settings), "")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	if len(s.defs) > 0 {
		root["$defs"] = s.defs
	}
	return json.Marshal(root)
}

// schemaBuilder makes the schema of a type.
type schemaBuilder struct {
	open  map[reflect.Type]string // The structs around the present value; a name if one of them is in itself.
	defs  object                  // The schemas of such structs, by their names.
	named int                     // How many there are.
}

// value returns the schema of values like v, which is the default, with the tags of their field.
func (s *schemaBuilder) value(v reflect.Value, tags reflect.StructTag) object {
	t := v.Type()
	switch {
	case isDuration(t):
		return annotated(object{"type": "string", "pattern": field.DurationPattern}, "x-range", tags.Get("range"))
	case isText(t):
		return text(tags)
	}
	switch t.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v = reflect.New(t.Elem())
		}
		return s.value(v.Elem(), tags)
	case reflect.Struct:
		return s.structure(v)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return object{"not": object{}} // The decoder takes none.
		}
		return object{"type": "object", "additionalProperties": s.value(reflect.New(t.Elem()).Elem(), tags)}
	case reflect.Slice:
		return object{"type": "array", "items": s.value(reflect.New(t.Elem()).Elem(), tags)}
	default:
		return scalar(t, tags)
	}
}

// structure returns the schema of a struct. One that is in itself is a definition, to which its places refer.
func (s *schemaBuilder) structure(v reflect.Value) object {
	t := v.Type()
	if _, within := s.open[t]; within {
		if s.open[t] == "" {
			s.named++
			s.open[t] = "group-" + strconv.Itoa(s.named)
		}
		return object{"$ref": "#/$defs/" + s.open[t]}
	}
	s.open[t] = ""
	properties, must := object{}, []string{}
	fields := fieldsOf(t)
	for _, name := range sortedKeys(fields) {
		f := fields[name]
		of := v.FieldByIndex(f.Index)
		schema := s.value(of, f.Tag)
		annotated(schema, "description", f.Tag.Get("meaning"))
		annotated(schema, "x-unit", f.Tag.Get("unit"))
		if required(f) {
			must = append(must, name)
		} else if preset := presetOf(of); preset != nil {
			schema["default"] = preset
		}
		properties[name] = schema
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(must) > 0 {
		schema["required"] = must
	}
	name := s.open[t]
	delete(s.open, t)
	if name == "" {
		return schema
	}
	s.defs[name] = schema
	return object{"$ref": "#/$defs/" + name}
}

// annotated adds a keyword to a schema, unless it is empty.
func annotated(schema object, keyword, value string) object {
	if value != "" {
		schema[keyword] = value
	}
	return schema
}

// text returns the schema of a text.
func text(tags reflect.StructTag) object {
	schema := object{"type": "string"}
	if allowed := words(tags.Get("oneof")); len(allowed) > 0 {
		schema["enum"] = allowed
	}
	if known := words(tags.Get("known")); len(known) > 0 {
		schema["examples"] = known
	}
	return schema
}

// scalar returns the schema of a value that encoding/json reads.
func scalar(t reflect.Type, tags reflect.StructTag) object {
	bits := 0
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32:
		return numbers("number", -math.MaxFloat32, math.MaxFloat32, tags)
	case reflect.Float64:
		return numbers("number", -math.MaxFloat64, math.MaxFloat64, tags)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		bits = t.Bits() - 1
		return numbers("integer", int64(-1)<<bits, int64(math.MaxInt64)>>(63-bits), tags)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return numbers("integer", uint64(0), uint64(math.MaxUint64)>>(64-t.Bits()), tags)
	case reflect.Interface:
		return object{"type": []string{"object", "array", "string", "number", "boolean"}} // Anything but null.
	default:
		return object{} // Left to the decoder.
	}
}

// numbers returns the schema of numbers: from low to high, as far as their range permits.
func numbers[N int64 | uint64 | float64](kind string, low, high N, tags reflect.StructTag) object {
	r := rangeOf(tags)
	schema := object{"type": kind, "minimum": low, "maximum": high}
	for keyword, bound := range r.Keywords() {
		switch {
		case keyword == "minimum" && r.Min.Value < float64(low), keyword == "maximum" && r.Max.Value > float64(high):
		default:
			schema[keyword] = bound
		}
	}
	return schema
}

// presetOf returns a default as a file would have it; nil where there is nothing to be written.
func presetOf(v reflect.Value) any {
	if m, ok := reflect.TypeAssert[encoding.TextMarshaler](v); ok && isText(v.Type()) {
		if text, err := m.MarshalText(); err == nil && len(text) > 0 {
			return string(text)
		}
		return nil
	}
	switch {
	case isDuration(v.Type()):
		return duration(time.Duration(v.Int()))
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return presetOf(v.Elem())
	case v.Kind() == reflect.Slice && v.Len() > 0:
		items := make([]any, v.Len())
		for i := range items {
			items[i] = presetOf(v.Index(i))
		}
		return items
	case v.Kind() == reflect.Map && v.Len() > 0 && v.Type().Key().Kind() == reflect.String:
		entries := object{}
		for _, name := range v.MapKeys() {
			entries[name.String()] = presetOf(v.MapIndex(name))
		}
		return entries
	case v.CanInt(), v.CanUint(), v.CanFloat(), v.Kind() == reflect.Bool, v.Kind() == reflect.String:
		return v.Interface()
	default:
		return nil
	}
}

// duration returns a duration without the zeros that [time.Duration.String] ends with: "2m" for "2m0s".
func duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
