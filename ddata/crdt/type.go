// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"encoding"
	"fmt"
)

// Type handles the values of one type for callers that do not know it, such as a replicator, which holds values of many
// types. Its methods may be called by several goroutines at once. A method that is passed a value of another type
// panics: the caller has to ask Is.
type Type interface {
	// Name is the type's name, see [Value].
	Name() string
	// Zero returns the bottom of the type.
	Zero() any
	// Is reports whether v is of the type.
	Is(v any) bool
	// Merge returns the join of a and b.
	Merge(a, b any) any
	// Delta returns the pending delta, see [Differ]. For types without deltas that is the
	// whole value, and true.
	Delta(v any) (any, bool)
	// Settled returns the value without pending delta.
	Settled(v any) any
	// Append appends the canonical encoding to dst.
	Append(dst []byte, v any) ([]byte, error)
	// Decode returns the value that the bytes encode, without pending delta, or an error
	// that wraps [ErrMalformed].
	Decode(b []byte) (any, error)
	// Retire folds origins that are gone, see [Retirer]. Types that hold nothing for an
	// origin return the value as it is.
	Retire(v any, gone func(Origin) bool) any
	// Size returns about how many bytes of memory the value holds. For types that cannot
	// tell it is the length of the encoding.
	Size(v any) int
}

// decoder is *T for a value of type T.
type decoder[T any] interface {
	*T
	encoding.BinaryUnmarshaler
}

// TypeOf returns the [Type] of T, as in TypeOf[crdt.ORSet[string]](). A *T decodes values.
func TypeOf[T Value[T], P decoder[T]]() Type {
	var zero T
	return typeOf[T, P]{name: zero.TypeName()}
}

type typeOf[T Value[T], P decoder[T]] struct{ name string }

func (t typeOf[T, P]) Name() string { return t.name }

func (t typeOf[T, P]) Zero() any {
	var zero T
	return zero
}

func (t typeOf[T, P]) Is(v any) bool {
	_, ok := v.(T)
	return ok
}

// of returns v as a T. The panic names both types, for whoever reads it in a log.
func (t typeOf[T, P]) of(v any) T {
	x, ok := v.(T)
	if !ok {
		panic(fmt.Sprintf("crdt: a value of type %T was passed to type %s", v, t.name))
	}
	return x
}

func (t typeOf[T, P]) Merge(a, b any) any { return t.of(a).Merge(t.of(b)) }

func (t typeOf[T, P]) Delta(v any) (any, bool) {
	x := t.of(v)
	if d, ok := any(x).(Differ[T]); ok {
		return d.Delta()
	}
	return x, true
}

func (t typeOf[T, P]) Settled(v any) any {
	x := t.of(v)
	if d, ok := any(x).(Differ[T]); ok {
		return d.Settled()
	}
	return x
}

func (t typeOf[T, P]) Append(dst []byte, v any) ([]byte, error) { return t.of(v).AppendBinary(dst) }

func (t typeOf[T, P]) Decode(b []byte) (any, error) {
	var x T
	if err := P(&x).UnmarshalBinary(b); err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	return x, nil
}

func (t typeOf[T, P]) Retire(v any, gone func(Origin) bool) any {
	x := t.of(v)
	if r, ok := any(x).(Retirer[T]); ok {
		return r.Retire(gone)
	}
	return x
}

func (t typeOf[T, P]) Size(v any) int {
	x := t.of(v)
	if s, ok := any(x).(Sizer); ok {
		return s.Size()
	}
	b, err := x.AppendBinary(nil)
	if err != nil {
		return 0
	}
	return len(b)
}
