// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/protocol"
)

// ErrMalformed is wrapped by every error of decoding.
var ErrMalformed = errors.New("sharding/wire: malformed")

func malformed(format string, values ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, values...))
}

// Number of a field.
type number = protowire.Number

func appendUint(b []byte, n number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func appendBool(b []byte, n number, v bool) []byte {
	if v {
		return appendUint(b, n, 1)
	}
	return b
}

func appendString(b []byte, n number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
}

func appendBytes(b []byte, n number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}

// begin starts a nested message, and leaves one byte for its length.
func begin(b []byte, n number) (dst []byte, at int) {
	b = append(protowire.AppendTag(b, n, protowire.BytesType), 0)
	return b, len(b)
}

// end puts the length of the nested message that began at at in front of it.
func end(b []byte, at int) []byte {
	size := len(b) - at
	if size < 1<<7 {
		b[at-1] = byte(size)
		return b
	}
	var prefix [10]byte
	p := protowire.AppendVarint(prefix[:0], uint64(size))
	b[at-1] = p[0]
	return slices.Insert(b, at, p[1:]...)
}

func appendNode(b []byte, n number, id gossip.NodeID) []byte {
	if id.IsZero() {
		return b
	}
	b, at := begin(b, n)
	b = appendString(b, 1, id.Address.Host)
	b = appendUint(b, 2, uint64(id.Address.Port))
	b = appendUID(b, 3, id.UID)
	return end(b, at)
}

func appendUID(b []byte, n number, uid gossip.UID) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), uint64(uid))
}

func appendEpoch(b []byte, n number, e protocol.Epoch) []byte {
	if e.IsZero() {
		return b
	}
	b, at := begin(b, n)
	b = appendUint(b, 1, uint64(e.Born))
	b = appendUint(b, 2, uint64(e.Term.UpNumber))
	b = appendUint(b, 3, e.Term.Start)
	b = appendUint(b, 4, e.N)
	b = appendUID(b, 5, e.Term.UID)
	return end(b, at)
}

func appendTerm(b []byte, n number, t protocol.Term) []byte {
	if t.IsZero() {
		return b
	}
	b, at := begin(b, n)
	b = appendUint(b, 1, uint64(t.UpNumber))
	b = appendUint(b, 2, t.Start)
	b = appendUID(b, 3, t.UID)
	return end(b, at)
}

// field is one field that was read.
type field struct {
	number number
	kind   protowire.Type
	value  uint64
	bytes  []byte // Part of the input.
	raw    []byte // The whole field as it came.
}

// next reads a field off b.
func next(b []byte) (f field, rest []byte, err error) {
	num, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		return f, nil, malformed("%v", protowire.ParseError(n))
	}
	f.number, f.kind = num, kind
	m := 0
	switch body := b[n:]; kind {
	case protowire.VarintType:
		f.value, m = protowire.ConsumeVarint(body)
	case protowire.BytesType:
		f.bytes, m = protowire.ConsumeBytes(body)
	case protowire.Fixed64Type:
		f.value, m = protowire.ConsumeFixed64(body)
	default:
		m = protowire.ConsumeFieldValue(num, kind, body)
	}
	if m < 0 {
		return f, nil, malformed("field %d: %v", num, protowire.ParseError(m))
	}
	f.raw = b[:n+m]
	return f, b[n+m:], nil
}

// each calls visit for every field of b.
func each(b []byte, visit func(*field) error) error {
	for len(b) > 0 {
		f, rest, err := next(b)
		if err != nil {
			return err
		}
		if err := visit(&f); err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// uint returns a varint that is at most limit.
func (f *field) uint(limit uint64) (uint64, error) {
	if f.kind != protowire.VarintType {
		return 0, malformed("field %d has wire type %d, want a varint", f.number, f.kind)
	}
	if f.value > limit {
		return 0, malformed("field %d is %d, at most %d", f.number, f.value, limit)
	}
	return f.value, nil
}

// data returns bytes of at most limit. They are part of the input.
func (f *field) data(limit int) ([]byte, error) {
	if f.kind != protowire.BytesType {
		return nil, malformed("field %d has wire type %d, want bytes", f.number, f.kind)
	}
	if len(f.bytes) > limit {
		return nil, malformed("field %d has %d bytes, at most %d", f.number, len(f.bytes), limit)
	}
	return f.bytes, nil
}

func (f *field) text(limit int) (string, error) {
	b, err := f.data(limit)
	if err == nil && !utf8.Valid(b) {
		err = malformed("field %d is not UTF-8", f.number)
	}
	return string(b), err
}

// set stores a varint in a field of any unsigned type.
func set[T ~uint8 | ~uint16 | ~uint32 | ~uint64](dst *T, f *field, limit uint64) error {
	v, err := f.uint(limit)
	*dst = T(v)
	return err
}

func setText(dst *string, f *field, limit int) (err error) {
	*dst, err = f.text(limit)
	return err
}

func setBool(dst *bool, f *field) error {
	v, err := f.uint(1)
	*dst = v == 1
	return err
}

func setNode(dst *gossip.NodeID, f *field) error {
	b, err := f.data(math.MaxInt)
	if err != nil {
		return err
	}
	*dst, err = node(b)
	return err
}

// node decodes the id of a node. It, epoch and term have loops of their own,
// since a field that is passed to a function value is allocated, and they are on
// the way of each message.
func node(b []byte) (id gossip.NodeID, err error) {
	for len(b) > 0 {
		var f field
		if f, b, err = next(b); err != nil {
			return id, err
		}
		switch f.number {
		case 1:
			err = setText(&id.Address.Host, &f, 255)
		case 2:
			err = set(&id.Address.Port, &f, math.MaxUint16)
		case 3:
			err = setUID(&id.UID, &f)
		}
		if err != nil {
			return id, err
		}
	}
	if err := id.Validate(); err != nil {
		return id, malformed("%v", err)
	}
	return id, nil
}

func setUID(dst *gossip.UID, f *field) error {
	if f.kind != protowire.Fixed64Type {
		return malformed("a uid has wire type %d", f.kind)
	}
	*dst = gossip.UID(f.value)
	return nil
}

func setEpoch(dst *protocol.Epoch, f *field) error {
	b, err := f.data(math.MaxInt)
	if err != nil {
		return err
	}
	*dst, err = epoch(b)
	return err
}

func epoch(b []byte) (e protocol.Epoch, err error) {
	for len(b) > 0 {
		var f field
		if f, b, err = next(b); err != nil {
			return e, err
		}
		switch f.number {
		case 1:
			var v uint64
			v, err = f.uint(math.MaxInt64)
			e.Born = int64(v)
		case 2:
			err = set(&e.Term.UpNumber, &f, math.MaxUint64)
		case 3:
			err = set(&e.Term.Start, &f, math.MaxUint64)
		case 4:
			err = set(&e.N, &f, math.MaxUint64)
		case 5:
			err = setUID(&e.Term.UID, &f)
		}
		if err != nil {
			return e, err
		}
	}
	return e, nil
}

func setTerm(dst *protocol.Term, f *field) error {
	b, err := f.data(math.MaxInt)
	if err != nil {
		return err
	}
	*dst, err = term(b)
	return err
}

func term(b []byte) (t protocol.Term, err error) {
	for len(b) > 0 {
		var f field
		if f, b, err = next(b); err != nil {
			return t, err
		}
		switch f.number {
		case 1:
			err = set(&t.UpNumber, &f, math.MaxUint64)
		case 2:
			err = set(&t.Start, &f, math.MaxUint64)
		case 3:
			err = setUID(&t.UID, &f)
		}
		if err != nil {
			return t, err
		}
	}
	return t, nil
}
