// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"encoding"
	"errors"
)

// What every replicated value is: who changes it (Origin), what it can do (Value and the
// optional methods below it), and how its bytes can be wrong.

// ErrMalformed is returned, wrapped, by every decoder for bytes that are not the encoding
// of a value: too short or too long, out of order, or in a form that no encoder writes.
var ErrMalformed = errors.New("crdt: malformed value")

// ErrType is returned, wrapped, when a value's elements, or the registers in it, are of a
// Go type that has no encoding (see [LWWRegister]).
var ErrType = errors.New("crdt: type without encoding")

// Origin names one life of one process that changes values. Two processes never share an
// origin, and a process that has lost what it knew of a value (it restarted without its
// disk, or dropped the value and starts it anew) uses another one: an origin that counted
// from the beginning again would give old names to new events. Zero is no process: under
// it values keep what the retired have contributed, see [Retirer].
type Origin uint64

// Value is what a replicated type T is. The zero value of T is its bottom: an empty
// counter, set or map. Values are immutable: each method leaves its receiver and its
// arguments as they were, so that values may be read by many goroutines at once.
type Value[T any] interface {
	// TypeName says of which type the value is: "gcounter", "orset[string]". It is the
	// same for all values of T, and part of what replicas compare.
	TypeName() string
	// Merge returns the join of both, the least value that holds what either holds. The
	// result has no pending delta.
	Merge(other T) T
	// AppendBinary appends the canonical encoding: equal values have equal bytes. A
	// pending delta is no part of it. Types of this package fail with [ErrType], or with
	// the error of a type of the user's own inside of them.
	encoding.BinaryAppender
}

// Differ is a value that remembers what its mutators have added, which is all that other
// replicas need to be told.
type Differ[T any] interface {
	// Delta returns what mutators have added since Settled, as a value that any state can
	// be merged with, in any order and more than once; false if that is nothing.
	Delta() (T, bool)
	// Settled returns the same value without a pending delta.
	Settled() T
}

// Retirer is a value that holds something for each origin, and can let go of those that
// are no more.
type Retirer[T any] interface {
	// Retire folds what the origins that are gone have contributed into origin zero and
	// keeps what the value says. It is legal only when all replicas hold the same of those
	// origins; states and deltas from before meet states from after only once they have
	// been retired alike, in the same steps. The result has no pending delta.
	Retire(gone func(Origin) bool) T
}

// Replacing is a value of which a change replaces what it has seen, and is told from others by a time: registers and
// maps of the last write. One that asks a majority of replicas to hold such a change has it made upon what a
// majority holds, so that a slow clock does not lose it.
type Replacing interface {
	// Replaces does nothing.
	Replaces()
}

// Sizer is a value that knows what it costs.
type Sizer interface {
	// Size returns about how many bytes of memory the value holds.
	Size() int
}
