// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
)

// The contents of registers. They may be of more types than keys, because nothing is sorted by them. A type that has no
// encoding is refused when a value is encoded: Go has no constraint "a basic type, or one with these methods".

// appendContent appends the encoding of a content.
func appendContent[V any](dst []byte, v V) ([]byte, error) {
	switch x := any(v).(type) {
	case string:
		return appendBytes(dst, x), nil
	case []byte:
		return appendBytes(dst, x), nil
	case encoding.BinaryAppender:
		b, err := x.AppendBinary(nil)
		return appendBytes(dst, b), err
	case encoding.BinaryMarshaler:
		b, err := x.MarshalBinary()
		return appendBytes(dst, b), err
	}
	switch x := reflect.ValueOf(&v).Elem(); {
	case x.Kind() == reflect.String:
		return appendBytes(dst, x.String()), nil
	case x.Kind() == reflect.Bool && x.Bool():
		return append(dst, 1), nil
	case x.Kind() == reflect.Bool:
		return append(dst, 0), nil
	case x.CanInt():
		return binary.AppendVarint(dst, x.Int()), nil
	case x.CanUint():
		return binary.AppendUvarint(dst, x.Uint()), nil
	case x.CanFloat():
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(x.Float())), nil
	}
	return dst, fmt.Errorf("%w: %s", ErrType, reflect.TypeFor[V]())
}

// readContent reads what appendContent has written.
func readContent[V any](r *reader) (v V) {
	switch x := any(&v).(type) {
	case *string:
		*x = string(r.bytes())
		return v
	case *[]byte:
		*x = bytes.Clone(r.bytes())
		return v
	case encoding.BinaryUnmarshaler:
		if b := r.bytes(); r.err == nil {
			if err := x.UnmarshalBinary(bytes.Clone(b)); err != nil {
				r.fail("%s: %v", reflect.TypeFor[V](), err)
			}
		}
		return v
	}
	switch x := reflect.ValueOf(&v).Elem(); {
	case x.Kind() == reflect.String:
		x.SetString(string(r.bytes()))
	case x.Kind() == reflect.Bool:
		x.SetBool(r.uint(1) == 1)
	case x.CanInt():
		n := r.int()
		if x.OverflowInt(n) {
			r.fail("%d does not fit into %s", n, x.Kind())
		}
		x.SetInt(n)
	case x.CanUint():
		n := r.uint(math.MaxUint64)
		if x.OverflowUint(n) {
			r.fail("%d does not fit into %s", n, x.Kind())
		}
		x.SetUint(n)
	case x.CanFloat():
		f := math.Float64frombits(r.fixed())
		if x.SetFloat(f); math.Float64bits(x.Float()) != math.Float64bits(f) {
			r.fail("a number that does not fit into %s", x.Kind())
		}
	default:
		r.fail("%s has no encoding", reflect.TypeFor[V]())
	}
	return v
}

// contentName returns the name of a type of contents: the result of its method TypeName, or its name in Go.
func contentName[V any]() string {
	var v V
	if t, ok := any(v).(interface{ TypeName() string }); ok {
		return t.TypeName()
	}
	t := reflect.TypeFor[V]()
	_, encodes := any(&v).(encoding.BinaryUnmarshaler)
	switch {
	case encodes:
		return t.String()
	case t == reflect.TypeFor[[]byte]():
		return "bytes"
	case t.Kind() <= reflect.Float64 || t.Kind() == reflect.String:
		return t.Kind().String()
	}
	return t.String()
}

// contentSize returns about how many bytes of memory a content takes beyond the Go value itself.
func contentSize[V any](v V) int {
	switch x := any(v).(type) {
	case string:
		return len(x)
	case []byte:
		return len(x)
	}
	if x := reflect.ValueOf(&v).Elem(); x.Kind() == reflect.String {
		return x.Len()
	}
	return 0
}

// ownedCopy returns a content that shares no memory which the caller may change.
func ownedCopy[V any](v V) V {
	if b, ok := any(v).([]byte); ok {
		return any(bytes.Clone(b)).(V)
	}
	return v
}

// encodesBefore reports whether the encoding of a sorts before that of b. It decides between contents that differ in
// nothing else.
func encodesBefore[V any](a, b V) bool {
	x, _ := appendContent(nil, a)
	y, _ := appendContent(nil, b)
	return bytes.Compare(x, y) < 0
}

// contentPart makes a content the payload of a fact.
type contentPart[V any] struct{ v V }

func (h contentPart[V]) appendTo(dst []byte) ([]byte, error) { return appendContent(dst, h.v) }

func (h contentPart[V]) readFrom(r *reader) contentPart[V] { return contentPart[V]{readContent[V](r)} }

func (h contentPart[V]) size() int { return contentSize(h.v) }

// timedContent is a content with the time and the origin of its writing.
type timedContent[V any] struct {
	at   Origin
	time int64
	v    V
}

// wins reports whether a counts as written later than b: by its time or, at the same time, by its lower origin. If both
// are the same, an origin was used by two processes; all replicas then choose by the encodings.
func (a timedContent[V]) wins(b timedContent[V]) bool {
	switch {
	case a.time != b.time:
		return a.time > b.time
	case a.at != b.at:
		return a.at < b.at
	}
	return encodesBefore(a.v, b.v)
}

// after returns the time of a write that replaces one at time before: now, or at least one more than before.
func after(now, before int64) int64 {
	if now <= before && before < math.MaxInt64 {
		return before + 1
	}
	return max(now, before)
}

func (a timedContent[V]) appendTo(dst []byte) ([]byte, error) {
	dst = binary.AppendVarint(binary.AppendUvarint(dst, uint64(a.at)), a.time)
	return appendContent(dst, a.v)
}

func (a timedContent[V]) readFrom(r *reader) timedContent[V] {
	a.at, a.time = Origin(r.uint(math.MaxUint64)), r.int()
	a.v = readContent[V](r)
	return a
}

func (a timedContent[V]) size() int { return contentSize(a.v) }
