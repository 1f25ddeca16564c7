// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine/wire"
)

// Fields that machine/wire does not have: lists of numbers, packed as protobuf does it, and
// fixed64 fields that are left out for zero. Lists are nil when they are empty.

func (e *encoder) uint(n wire.Number, v uint64) { e.b = wire.AppendUint(e.b, n, v) }

func (e *encoder) flag(n wire.Number, v bool) { e.b = wire.AppendBool(e.b, n, v) }

func (e *encoder) text(n wire.Number, v string) { e.b = wire.AppendString(e.b, n, v) }

// each appends a text for each of a list, also the empty one.
func (e *encoder) each(n wire.Number, all []string) {
	for _, v := range all {
		e.b = wire.AppendVarint(wire.AppendTag(e.b, n, wire.BytesType), uint64(len(v)))
		e.b = append(e.b, v...)
	}
}

// fixed appends a number in eight bytes, and nothing for 0.
func (e *encoder) fixed(n wire.Number, v uint64) {
	if v != 0 {
		e.b = wire.AppendFixed64(e.b, n, v)
	}
}

// inside appends a field with a message inside.
func (e *encoder) inside(n wire.Number, fields func()) {
	b, at := wire.Begin(e.b, n)
	e.b = b
	fields()
	e.b = wire.End(e.b, at)
}

// appendFixeds appends a list of numbers in eight bytes each.
func appendFixeds[T ~uint64](b []byte, n wire.Number, all []T) []byte {
	if len(all) == 0 {
		return b
	}
	b = wire.AppendVarint(wire.AppendTag(b, n, wire.BytesType), uint64(8*len(all)))
	for _, v := range all {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// setFixeds stores a list of numbers in eight bytes each.
func setFixeds[T ~uint64](dst *[]T, f *wire.Field) error {
	b, err := f.Data(math.MaxInt)
	if err != nil {
		return err
	}
	if len(b)%8 != 0 {
		return wire.Malformed("field %d has %d bytes of numbers with 8 each", f.Number, len(b))
	}
	*dst = nil
	if len(b) > 0 {
		*dst = make([]T, len(b)/8)
	}
	for i := range *dst {
		(*dst)[i] = T(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return nil
}

// appendUints appends a list of numbers of variable length.
func appendUints[T ~uint16 | ~uint32](b []byte, n wire.Number, all []T) []byte {
	if len(all) == 0 {
		return b
	}
	b, at := wire.Begin(b, n)
	for _, v := range all {
		b = wire.AppendVarint(b, uint64(v))
	}
	return wire.End(b, at)
}

// setUints stores a list of numbers of variable length, each of at most limit.
func setUints[T ~uint16 | ~uint32](dst *[]T, f *wire.Field, limit uint64) error {
	b, err := f.Data(math.MaxInt)
	if err != nil {
		return err
	}
	*dst = nil
	if n := numbers(b); n > 0 {
		*dst = make([]T, 0, n)
	}
	for len(b) > 0 {
		v, n := wire.Varint(b)
		if n == 0 || v > limit {
			return wire.Malformed("field %d has a number that is cut off, or over %d", f.Number, limit)
		}
		*dst, b = append(*dst, T(v)), b[n:]
	}
	return nil
}

// numbers counts the numbers of variable length in a list.
func numbers(b []byte) int {
	count := 0
	for _, c := range b {
		if c < 1<<7 { // The last byte of a number.
			count++
		}
	}
	return count
}

// count returns how many fields with a number begin b.
func count(b []byte, n wire.Number) int {
	count := 0
	for len(b) > 0 {
		var t tag
		if t, _, _, b = next(b); t>>3 == tag(n) {
			count++
		}
	}
	return count
}

// tag is the number of a field and its type.
type tag uint64

// A tag is tagStep times the number, plus one of the types.
const (
	asUint  = tag(wire.VarintType)
	asBytes = tag(wire.BytesType)
	tagStep = 8
)

// next reads a field off the front of b: its tag, its value if it is a number, and if it is
// bytes these. It is wire.Next without the parts that entries do not need, and faster for
// short fields. What is no field has tag 0, and no rest.
func next(b []byte) (t tag, v uint64, data, rest []byte) {
	if len(b) >= 2 && b[0] >= tagStep && b[0] < 1<<7 && b[1] < 1<<7 {
		t, v = tag(b[0]), uint64(b[1])
		switch end := 2 + int(v); {
		case t%tagStep == asUint:
			return t, v, nil, b[2:]
		case t%tagStep == asBytes && end <= len(b):
			return t, 0, b[2:end:end], b[end:]
		}
	}
	f, rest, err := wire.Next(b)
	if err != nil {
		return 0, 0, nil, nil
	}
	return tag(f.Number)*tagStep + tag(f.Type), f.Value, f.Bytes, rest
}

// other judges the field at the front of b, which has none of the tags of its message: it
// may be of a later version if its number is above all that the message has. Otherwise it is
// cut off, or of a wrong type.
func other(b []byte, above wire.Number) error {
	f, _, err := wire.Next(b)
	if err != nil || f.Number > above {
		return err
	}
	return wire.Malformed("field %d has wire type %d", f.Number, f.Type)
}

// grown returns the list with room for as many more as there are fields with the number
// of f in the body, unless it has some already.
func grown[T any](d *decoder, all []T, f *wire.Field) []T {
	if all != nil {
		return all
	}
	return make([]T, 0, count(d.in, f.Number))
}

// fields calls set for each field of b.
func fields(b []byte, set func(*wire.Field) error) error { return wire.Each(b, set) }

// inner returns the bytes of a message inside.
func inner(f *wire.Field) ([]byte, error) { return f.Data(math.MaxInt) }

// shown appends a field with what is remembered of a store.
func (e *encoder) shown(n wire.Number, s protocol.Shown) {
	e.inside(n, func() {
		e.fixed(shownID, uint64(s.ID))
		e.fixed(shownUID, uint64(s.UID))
		e.uint(shownWritten, s.Written)
		e.uint(shownBefore, s.Before)
	})
}
