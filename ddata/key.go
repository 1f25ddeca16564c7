// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"encoding"

	"github.com/quorate/quorate/ddata/crdt"
)

// Key names a replicated value and says of which type it is. Make one with [NewKey];
// equal names and types are equal keys.
type Key[T crdt.Value[T]] struct {
	name string
	typ  crdt.Type // Nil for the zero Key, which names nothing.
}

// decoder is *T for a value of type T.
type decoder[T any] interface {
	*T
	encoding.BinaryUnmarshaler
}

// NewKey returns the key with a name of 1 to 1,024 bytes of UTF-8, which no other type
// may use: NewKey[crdt.GCounter]("visits").
func NewKey[T crdt.Value[T], P decoder[T]](name string) Key[T] {
	return Key[T]{name: name, typ: crdt.TypeOf[T, P]()}
}

// Name returns the name.
func (k Key[T]) Name() string { return k.name }

// String returns the name.
func (k Key[T]) String() string { return k.name }
