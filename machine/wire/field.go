// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/quorate/quorate/gossip"
)

// Reading: Varint, Tag and Bytes read parts of a field off a slice, Next a whole
// field, Each all fields of a message. The methods of a Field and the Set functions
// then return or store its value, within the bound that the caller gives.

// ErrMalformed is wrapped by every error of reading.
var ErrMalformed = errors.New("malformed")

// Malformed returns an error that wraps [ErrMalformed], and the error that the format
// wraps with %w, if any.
func Malformed(format string, values ...any) error {
	return fmt.Errorf("%w: %w", ErrMalformed, fmt.Errorf(format, values...))
}

// Number is the number of a field within its message, from 1 to 536,870,911.
type Number uint32

const maxNumber = 1<<29 - 1

// Type is how the value of a field is encoded.
type Type uint8

// The types of fields. Groups are never written by this project, and skipped when
// read.
const (
	VarintType     Type = 0
	Fixed64Type    Type = 1
	BytesType      Type = 2
	startGroupType Type = 3
	endGroupType   Type = 4
	Fixed32Type    Type = 5
)

// maxGroups is how deep groups may be nested, as in protobuf.
const maxGroups = 10_000

// Field is one field that was read. Its slices alias the input.
type Field struct {
	Number Number
	Type   Type
	Value  uint64 // The value of a varint, a fixed64 or a fixed32.
	Bytes  []byte // The value of a field of type bytes.
	Raw    []byte // The whole field with its tag, as it was encoded.
}

// Varint reads a varint off the front of b and returns its length, 0 if there is none.
func Varint(b []byte) (v uint64, n int) {
	if len(b) > 0 && b[0] < 1<<7 {
		return uint64(b[0]), 1
	}
	return varint(b)
}

// varint reads a varint of more than one byte.
func varint(b []byte) (v uint64, n int) {
	v, n = binary.Uvarint(b)
	return v, max(n, 0)
}

// Tag reads a tag off the front of b and returns its length, 0 if there is none.
func Tag(b []byte) (n Number, t Type, size int) {
	tag, size := Varint(b)
	if number := tag >> 3; number == 0 || number > maxNumber {
		return 0, 0, 0
	}
	return Number(tag >> 3), Type(tag & 7), size
}

// Bytes reads a length and as many bytes off the front of b, and returns the length of
// both together, 0 if b is too short. The returned slice aliases b.
func Bytes(b []byte) (v []byte, n int) {
	size, n := Varint(b)
	if n == 0 || size > uint64(len(b)-n) {
		return nil, 0
	}
	end := n + int(size)
	return b[n:end:end], end
}

// Next reads a field off the front of b and returns the rest of b.
func Next(b []byte) (f Field, rest []byte, err error) { return next(b, maxGroups) }

func next(b []byte, groups int) (f Field, rest []byte, err error) {
	number, typ, n := Tag(b)
	if n == 0 {
		return f, nil, Malformed("a tag is cut off, or no field has it")
	}
	f.Number, f.Type = number, typ
	m := 0
	switch body := b[n:]; typ {
	case VarintType:
		f.Value, m = Varint(body)
	case BytesType:
		f.Bytes, m = Bytes(body)
	case Fixed64Type:
		if len(body) >= 8 {
			f.Value, m = binary.LittleEndian.Uint64(body), 8
		}
	case Fixed32Type:
		if len(body) >= 4 {
			f.Value, m = uint64(binary.LittleEndian.Uint32(body)), 4
		}
	case startGroupType:
		m = group(body, number, groups)
	default: // The end of a group that has not begun, or an unknown type.
	}
	if m == 0 {
		return f, nil, Malformed("field %d of wire type %d is cut off, or no value", number, typ)
	}
	f.Raw = b[: n+m : n+m]
	return f, b[n+m:], nil
}

// group returns the length of the content of a group with its end tag, 0 if it has no
// end.
func group(b []byte, n Number, groups int) int {
	end := uint64(n)<<3 | uint64(endGroupType)
	for at := 0; groups > 0; {
		if tag, size := Varint(b[at:]); size > 0 && tag == end {
			return at + size
		}
		f, _, err := next(b[at:], groups-1)
		if err != nil {
			return 0
		}
		at += len(f.Raw)
	}
	return 0
}

// Each calls visit for every field of b in order, until an error. The field is valid
// until visit returns. One is allocated for all, so that codecs of frequent messages loop
// around [Next] instead.
func Each(b []byte, visit func(*Field) error) error {
	if len(b) == 0 {
		return nil
	}
	return new(Field).each(b, visit)
}

// each reads the fields of b into f, one after the other.
func (f *Field) each(b []byte, visit func(*Field) error) (err error) {
	for len(b) > 0 {
		if *f, b, err = Next(b); err != nil {
			return err
		}
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// Each calls visit for every field of the message in f, as the function [Each] does. It allocates nothing, so that a
// message of many small ones costs no more than they: visit gets f itself, which is as it was afterwards.
func (f *Field) Each(visit func(*Field) error) error {
	b, err := f.Data(math.MaxInt)
	if err != nil {
		return err
	}
	whole := *f
	err = f.each(b, visit)
	*f = whole
	return err
}

// Uint returns the value of a varint, which must be at most limit.
func (f *Field) Uint(limit uint64) (uint64, error) {
	if f.Type != VarintType {
		return 0, f.unexpected("a varint")
	}
	if f.Value > limit {
		return 0, Malformed("field %d is %d, at most %d", f.Number, f.Value, limit)
	}
	return f.Value, nil
}

// Fixed64 returns the value of a fixed64.
func (f *Field) Fixed64() (uint64, error) {
	if f.Type != Fixed64Type {
		return 0, f.unexpected("a fixed64")
	}
	return f.Value, nil
}

// Data returns the value of a field of type bytes, at most limit bytes long. It
// aliases the input.
func (f *Field) Data(limit int) ([]byte, error) {
	if f.Type != BytesType {
		return nil, f.unexpected("bytes")
	}
	if len(f.Bytes) > limit {
		return nil, Malformed("field %d has %d bytes, at most %d", f.Number, len(f.Bytes), limit)
	}
	return f.Bytes, nil
}

// Text returns a text of at most limit bytes, which must be UTF-8.
func (f *Field) Text(limit int) (string, error) {
	b, err := f.Data(limit)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(b) {
		return "", Malformed("field %d is not UTF-8", f.Number)
	}
	return string(b), nil
}

func (f *Field) unexpected(want string) error {
	return Malformed("field %d has wire type %d, want %s", f.Number, f.Type, want)
}

// Set stores a varint of at most limit in a field of any unsigned type. The limit must
// fit into that type.
func Set[T ~uint8 | ~uint16 | ~uint32 | ~uint64](dst *T, f *Field, limit uint64) error {
	v, err := f.Uint(limit)
	*dst = T(v)
	return err
}

// SetFixed stores a fixed64 in a field of any unsigned type of that size.
func SetFixed[T ~uint64](dst *T, f *Field) error {
	v, err := f.Fixed64()
	*dst = T(v)
	return err
}

// SetBool stores a truth value.
func SetBool(dst *bool, f *Field) error {
	v, err := f.Uint(1)
	*dst = v == 1
	return err
}

// SetText stores a text of at most limit bytes.
func SetText(dst *string, f *Field, limit int) (err error) {
	*dst, err = f.Text(limit)
	return err
}

// SetName stores a name of at most limit bytes, see [gossip.IsName].
func SetName(dst *string, f *Field, limit int) error {
	if err := SetText(dst, f, limit); err != nil {
		return err
	}
	if !gossip.IsName(*dst) {
		return Malformed("a name of field %d has characters that do not print: %.100q", f.Number, *dst)
	}
	return nil
}
