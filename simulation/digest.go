// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"math"
	"reflect"
	"slices"
)

// digest returns a number that is equal for values with equal content, wherever they
// are in memory: pointers are followed, and unexported fields count. It is meant for
// requests and answers, which are trees; of functions and channels only the type
// counts. The digest is FNV-1a over 64-bit words with a shift, and withstands no
// attacker.
func digest(v any) uint64 {
	d := digester(offset64)
	d.value(reflect.ValueOf(v))
	return uint64(d)
}

type digester uint64

func (d *digester) mix(x uint64) {
	h := (uint64(*d) ^ x) * prime64
	*d = digester(h ^ h>>29)
}

func (d *digester) text(s string) {
	for i := range len(s) {
		*d = (*d ^ digester(s[i])) * prime64
	}
	d.mix(uint64(len(s)))
}

func (d *digester) value(v reflect.Value) {
	if !v.IsValid() {
		d.mix(0)
		return
	}
	d.mix(uint64(v.Kind()))
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			d.mix(0)
			return
		}
		if v.Kind() == reflect.Interface {
			d.text(v.Elem().Type().String())
		}
		d.value(v.Elem())
	case reflect.Struct:
		for _, field := range v.Fields() {
			d.value(field)
		}
	case reflect.Slice, reflect.Array:
		d.mix(uint64(v.Len()))
		for i := range v.Len() {
			d.value(v.Index(i))
		}
	case reflect.Map:
		d.entries(v)
	default:
		d.scalar(v)
	}
}

// entries mixes the entries of a map in the order of their digests.
func (d *digester) entries(v reflect.Value) {
	var entries []uint64
	for iter := v.MapRange(); iter.Next(); {
		e := digester(offset64)
		e.value(iter.Key())
		e.value(iter.Value())
		entries = append(entries, uint64(e))
	}
	slices.SortFunc(entries, cmp.Compare[uint64])
	d.mix(uint64(len(entries)))
	for _, e := range entries {
		d.mix(e)
	}
}

func (d *digester) scalar(v reflect.Value) {
	switch {
	case v.Kind() == reflect.String:
		d.text(v.String())
	case v.CanInt():
		d.mix(uint64(v.Int()))
	case v.CanUint():
		d.mix(v.Uint())
	case v.CanFloat():
		d.mix(math.Float64bits(v.Float()))
	case v.CanComplex():
		d.mix(math.Float64bits(real(v.Complex())))
		d.mix(math.Float64bits(imag(v.Complex())))
	case v.Kind() == reflect.Bool && v.Bool():
		d.mix(1)
	default:
		d.text(v.Type().String())
	}
}
