// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/machine/wire"
)

// What the encodings by hand need besides machine/wire: how the encoder appends fields, and tags, by which decoders
// switch over fields.

func (e *encoder) uint(n wire.Number, v uint64) { e.b = wire.AppendUint(e.b, n, v) }

// fixed appends a number in eight bytes, and nothing for 0.
func (e *encoder) fixed(n wire.Number, v uint64) {
	if v != 0 {
		e.b = wire.AppendFixed64(e.b, n, v)
	}
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

// next reads the field at the front of b: its tag, and its value v if it is a number, or data if it is bytes. It is
// like wire.Next, with less in its result, and faster for short fields. If b does not begin with a field, t is 0 and
// rest empty.
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

// unknownField returns an error for the field at the front of b, whose tag is not one of its message, and nil if its
// number is above: then it is a field of a later version, and skipped. Otherwise it is cut off, or of a wrong type.
func unknownField(b []byte, above wire.Number) error {
	f, _, err := wire.Next(b)
	if err != nil || f.Number > above {
		return err
	}
	return wire.Malformed("field %d has wire type %d", f.Number, f.Type)
}

// withRoom returns the list, which is nil when the first field of its number is read, with capacity for all of them: as
// many as the body has fields with the number of f.
func withRoom[T any](d *decoder, all []T, f *wire.Field) []T {
	if all != nil {
		return all
	}
	return make([]T, 0, count(d.in, f.Number))
}

// fields calls set for each field of b.
func fields(b []byte, set func(*wire.Field) error) error { return wire.Each(b, set) }

// inner returns the bytes of the message that a field holds.
func inner(f *wire.Field) ([]byte, error) { return f.Data(math.MaxInt) }
