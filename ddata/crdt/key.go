// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"cmp"
	"encoding/binary"
	"reflect"
)

// Elements of sets and keys of maps: which Go types they may have, and the two forms in which stores sort them, a
// single key or a pair.

// Key is what elements of sets and keys of maps may be: texts and whole numbers, whose
// order and encoding are the same on every machine. Types with the same underlying type
// have the same encoding and the same name ("string", "int64").
type Key interface {
	~string | ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// keyName returns the name of a key's underlying type.
func keyName[K Key]() string { return reflect.TypeFor[K]().Kind().String() }

// appendKey appends a text with its length, or a number.
func appendKey[K Key](dst []byte, k K) []byte {
	if s, ok := any(k).(string); ok {
		return appendBytes(dst, s)
	}
	switch v := reflect.ValueOf(k); {
	case v.Kind() == reflect.String:
		return appendBytes(dst, v.String())
	case v.CanInt():
		return binary.AppendVarint(dst, v.Int())
	default:
		return binary.AppendUvarint(dst, v.Uint())
	}
}

// readKey reads what appendKey has written.
func readKey[K Key](r *reader) (k K) {
	if s, ok := any(&k).(*string); ok {
		*s = string(r.bytes())
		return k
	}
	v := reflect.ValueOf(&k).Elem()
	switch {
	case v.Kind() == reflect.String:
		v.SetString(string(r.bytes()))
	case v.CanInt():
		x := r.int()
		if v.OverflowInt(x) {
			r.fail("%d does not fit into %s", x, v.Kind())
		}
		v.SetInt(x)
	default:
		x := r.uint(^uint64(0))
		if v.OverflowUint(x) {
			r.fail("%d does not fit into %s", x, v.Kind())
		}
		v.SetUint(x)
	}
	return k
}

// keySize returns the bytes of a key beyond the Go value itself.
func keySize[K Key](k K) int {
	if s, ok := any(k).(string); ok {
		return len(s)
	}
	if v := reflect.ValueOf(k); v.Kind() == reflect.String {
		return v.Len()
	}
	return 0
}

// sizeOf returns the bytes of a Go value itself.
func sizeOf[T any](T) int { return int(reflect.TypeFor[T]().Size()) }

// singleKey is a single key.
type singleKey[K Key] struct{ k K }

func (a singleKey[K]) compareKey(b singleKey[K]) int { return cmp.Compare(a.k, b.k) }

// compare makes a one an item of a tree.
func (a singleKey[K]) compare(b *singleKey[K]) int { return cmp.Compare(a.k, b.k) }

func (a singleKey[K]) appendKey(dst []byte) []byte { return appendKey(dst, a.k) }

func (a singleKey[K]) readFrom(r *reader) singleKey[K] { return singleKey[K]{readKey[K](r)} }

func (a singleKey[K]) size() int { return keySize(a.k) }

// keyPair is a key of a multi-map and one of its elements.
type keyPair[K, E Key] struct {
	k K
	e E
}

func (a keyPair[K, E]) compareKey(b keyPair[K, E]) int {
	if c := cmp.Compare(a.k, b.k); c != 0 {
		return c
	}
	return cmp.Compare(a.e, b.e)
}

func (a keyPair[K, E]) appendKey(dst []byte) []byte { return appendKey(appendKey(dst, a.k), a.e) }

func (a keyPair[K, E]) readFrom(r *reader) keyPair[K, E] {
	k := readKey[K](r)
	return keyPair[K, E]{k, readKey[E](r)}
}

func (a keyPair[K, E]) size() int { return keySize(a.k) + keySize(a.e) }

// unit has no value: it is the key of facts of a register, and the payload of facts of a set.
type unit struct{}

func (unit) compareKey(unit) int { return 0 }

func (unit) appendKey(dst []byte) []byte { return dst }

func (unit) appendTo(dst []byte) ([]byte, error) { return dst, nil }

func (unit) readFrom(*reader) unit { return unit{} }

func (unit) size() int { return 0 }
