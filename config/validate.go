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

// validator is implemented by sections and values that check themselves.
type validator interface{ Validate() error }

// validate calls Validate of the sections, then of a whole document that has the
// method. Faults at or below keys that have a fault already are dropped: the value
// that was refused there is the default, not what the user wrote.
func (d *decoder) validate(v reflect.Value, path []string) {
	before := len(d.faults)
	if len(path) == 0 && v.Kind() == reflect.Struct {
		for _, f := range fieldsOf(v.Type()) {
			d.ask(v.FieldByIndex(f.index), []string{f.key})
		}
		for _, t := range d.beside {
			d.ask(t.fresh, []string{t.name})
		}
		if self, ok := validatorOf(v); ok {
			d.refuse(self.Validate(), nil)
		}
	} else {
		d.ask(v, path)
	}
	refused := slices.Clone(d.faults[:before])
	kept := slices.DeleteFunc(slices.Clone(d.faults[before:]), func(e *Error) bool {
		return slices.ContainsFunc(refused, func(r *Error) bool {
			return r.Key != "" && (e.Key == r.Key || strings.HasPrefix(e.Key, r.Key+"."))
		})
	})
	d.faults = append(d.faults[:before], kept...)
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
	return d.faults
}

// partsOf returns the parts of a key: names[1] and names.[1] have two.
func partsOf(key string) []string {
	parts := strings.Split(strings.ReplaceAll(key, "[", ".["), ".")
	return slices.DeleteFunc(parts, func(part string) bool { return part == "" })
}
