// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/config/field"
)

// After decoding, sections are asked one by one and then the whole document ([decoder.validate]); after each step,
// faults that follow from earlier ones are dropped ([decoder.settle]). Last, errors of validators become faults with
// places ([decoder.refuse], [File.Locate]).

// validator is implemented by sections and values that check themselves.
type validator interface{ Validate() error }

// validate calls Validate of the sections, then of a whole document that has the
// method. What is said of a value that has a fault already is dropped, at each of the two steps.
func (d *decoder) validate(v reflect.Value, path []string) {
	decoded := len(d.faults)
	if len(path) > 0 || v.Kind() != reflect.Struct {
		d.ask(v, path)
		d.settle(decoded)
		return
	}
	for _, f := range fieldsOf(v.Type()) {
		d.ask(v.FieldByIndex(f.index), []string{f.key})
	}
	for _, t := range d.beside {
		before := len(d.faults)
		d.ask(t.fresh, []string{t.name})
		d.standFor(t, d.faults[before:])
	}
	d.settle(decoded)
	if self, ok := validatorOf(v); ok {
		checked := len(d.faults)
		d.refuse(self.Validate(), nil)
		d.settle(checked)
	}
}

// settle keeps, of the faults from an index on, those that no mistake explains which is reported before it: one mistake
// is one fault.
func (d *decoder) settle(from int) {
	refused := d.faults[:from]
	kept := slices.DeleteFunc(slices.Clone(d.faults[from:]), func(e *Error) bool {
		return slices.ContainsFunc(refused, func(r *Error) bool { return d.explains(r, e) })
	})
	d.faults = append(refused, kept...)
}

// standFor has the faults of a section that is not there stand where it is chosen.
func (d *decoder) standFor(t target, faults Errors) {
	if d.isSet(t.path()) {
		return
	}
	for _, key := range t.chosen {
		if where, ok := d.file.sources[strings.Join(partsOf(key), separator)]; ok {
			for _, e := range faults {
				e.File, e.Line = where.file, where.line
			}
			return
		}
	}
}

// explains reports whether a fault follows from another one. The value at a key that was refused, and that of a list
// with an item that was refused, is not what the user wrote. A key that is not set is missing because its name was
// misspelt.
func (d *decoder) explains(refused, e *Error) bool {
	if refused.Key == "" {
		return false
	}
	if errors.Is(refused, ErrUnknownKey) {
		meant := refused.Key[:strings.LastIndexByte(refused.Key, '.')+1] + refused.Nearest
		return e.Key == meant && !d.isSet(partsOf(e.Key))
	}
	return slices.ContainsFunc(append(d.related[e], e.Key), func(key string) bool {
		return key == refused.Key || strings.HasPrefix(key, refused.Key+".") || strings.HasPrefix(key, refused.Key+"[") || strings.HasPrefix(refused.Key, key+"[")
	})
}

// isSet reports whether a file or a variable has a key.
func (d *decoder) isSet(path []string) bool {
	_, ok := d.file.sources[strings.Join(path, separator)]
	return ok
}

// ask calls Validate on v or, if v has no such method, on the values inside it.
func (d *decoder) ask(v reflect.Value, path []string) {
	if self, ok := validatorOf(v); ok {
		d.refuse(self.Validate(), path)
		return
	}
	at := func(part string) []string { return append(slices.Clip(path), part) }
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			d.ask(v.Elem(), path)
		}
	case reflect.Struct:
		for _, f := range fieldsOf(v.Type()) {
			d.ask(v.FieldByIndex(f.index), at(f.key))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			entry := reflect.New(v.Type().Elem()).Elem()
			entry.Set(v.MapIndex(key))
			d.ask(entry, at(key.String()))
		}
	case reflect.Slice:
		for i := range v.Len() {
			d.ask(v.Index(i), at("["+strconv.Itoa(i)+"]"))
		}
	default:
	}
}

func validatorOf(v reflect.Value) (validator, bool) {
	if v.Kind() == reflect.Pointer && v.IsNil() || v.Kind() == reflect.Interface {
		return nil, false
	}
	if v.CanInterface() {
		if self, ok := reflect.TypeAssert[validator](v); ok {
			return self, true
		}
	}
	if v.CanAddr() && v.Addr().CanInterface() {
		self, ok := reflect.TypeAssert[validator](v.Addr())
		return self, ok
	}
	return nil, false
}

// refuse records the error of a validator, one fault for each joined error.
func (d *decoder) refuse(err error, path []string) {
	for _, fault := range field.Parts(err) {
		key, reason := field.Of(fault) // The key is shown before the reason.
		at := path
		if key != "" {
			at = append(slices.Clip(path), partsOf(key)...)
		}
		d.fault(at, errors.Join(ErrInvalid, fault), oneLine(reason))
		d.relate(d.faults[len(d.faults)-1], at, fault, path)
	}
}

// relate notes the other keys that a fault is about. A fault at a key that is not set stands where the first of those
// is that is set.
func (d *decoder) relate(e *Error, at []string, fault error, section []string) {
	placed := d.isSet(at)
	for _, other := range field.Related(fault) {
		path := append(slices.Clip(section), partsOf(other)...)
		if d.related == nil {
			d.related = map[*Error][]string{}
		}
		d.related[e] = append(d.related[e], display(path))
		if !placed && d.isSet(path) {
			placed = true
			where := d.file.at(path)
			e.File, e.Line = where.file, where.line
		}
	}
}

// Locate adds the file and the line of a setting to an error about it that was found after
// [File.Decode], such as by what was started with the settings. The setting is named by the first
// error in the chain of err that has a method Field() string, with the path of the setting from the
// top of the document. Locate returns [Errors] with that fault, in whose chain err is; err itself
// if it names no setting.
func (f *File) Locate(err error) error {
	var named interface {
		error
		Field() string
	}
	if !errors.As(err, &named) || named.Field() == "" {
		return err
	}
	key, reason := field.Of(named)
	d := decoder{file: f}
	d.fault(partsOf(key), errors.Join(ErrInvalid, err), oneLine(reason))
	return f.hide(d.faults)
}

// partsOf returns the parts of a key: names[1] and names.[1] have two.
func partsOf(key string) []string {
	parts := strings.Split(strings.ReplaceAll(key, "[", ".["), ".")
	return slices.DeleteFunc(parts, func(part string) bool { return part == "" })
}
