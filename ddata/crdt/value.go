// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"encoding"
	"errors"
)

// The interfaces of replicated values: [Value], and the optional ones after it; who changes values ([Origin]); and what
// may be wrong with their bytes.

// ErrMalformed is returned, wrapped, by every decoder for bytes that are not the encoding
// of a value: too short or too long, out of order, or in a form that no encoder writes.
var ErrMalformed = errors.New("crdt: malformed value")

// ErrType is returned, wrapped, when a value's elements, or the registers in it, are of a
// Go type that has no encoding (see [LWWRegister]).
var ErrType = errors.New("crdt: type without encoding")

// Origin names a process that changes values. Two processes never share an origin, and a process that has lost what it
// knew of a value (it was restarted without its disk, or has dropped the value and begins it again) uses another one:
// it would number new events like old ones. Zero is no process: under it values keep what retired origins have
// contributed, see [Retirer].
type Origin uint64

// Value is what a replicated type T is. The zero value of T is its bottom: an empty
// counter, set or map. Values are immutable: each method leaves its receiver and its
// arguments as they were, so that values may be read by many goroutines at once.
type Value[T any] interface {
	// TypeName says of which type the value is: "gcounter", "orset[string]". It is the
	// same for all values of T, and part of what replicas compare.
	TypeName() string
	// Merge returns the join of both: the least value that contains both. The result has no pending delta.
	Merge(other T) T
	// AppendBinary appends the canonical encoding: equal values have equal bytes. A
	// pending delta is no part of it. Types of this package fail with [ErrType], or with
	// the error of a type of the user's own inside of them.
	encoding.BinaryAppender
}

// Differ is a value that remembers what its mutators have added: other replicas need to be sent no more than that.
type Differ[T any] interface {
	// Delta returns what mutators have added since Settled, as a value that any state can
	// be merged with, in any order and more than once; false if that is nothing.
	Delta() (T, bool)
	// Settled returns the same value without a pending delta.
	Settled() T
}

// Retirer is a value that holds something for each origin, and can fold the origins of processes that have ended.
type Retirer[T any] interface {
	// Retire folds what the origins that are gone have contributed into origin zero. What is read of the value stays
	// the same. It may be called only when all replicas hold the same of those origins; and a value or delta from
	// before may be merged with a value from after only once it was retired too, by the same calls. The result has no
	// pending delta.
	Retire(gone func(Origin) bool) T
}

// Replacer is a value whose changes replace what they have seen, and which of two changes counts is decided by their
// times: registers and maps in which the last write wins. A replicator that has a majority of replicas confirm such a
// change makes it in the value that a majority holds, so that a slow clock does not lose it.
type Replacer interface {
	// Replaces does nothing: it marks the type.
	Replaces()
}

// Sizer is a value that knows how much memory it takes.
type Sizer interface {
	// Size returns about how many bytes of memory the value holds.
	Size() int
}
