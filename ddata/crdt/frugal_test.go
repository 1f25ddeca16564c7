// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/internal/patience/frugal"
)

// perByte is how many bytes a value may take for each byte of its encoding. That has no tags and few lengths: two bytes
// say which event has written a fact, which is an origin and a number of eight bytes each in memory, beside its key;
// and a value in a map is a tree of its own. Where keys have the length of those of programs it is about five.
const perByte = 28

// dense is about how many bytes the encodings have, which have little in each byte.
const dense = 32 << 10

// joined puts an encoding together.
func joined(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func number(all ...uint64) (b []byte) {
	for _, n := range all {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// repeated is a list with its length, of items that a function makes.
func repeated(n int, item func(i int) []byte) []byte {
	b := number(uint64(n))
	for i := range n {
		b = append(b, item(i)...)
	}
	return b
}

// key is the i-th key in the order of its type, in the shortest form for as many.
func key(name string, i int) []byte {
	if strings.Contains(name, "int64") {
		return binary.AppendVarint(nil, int64(i))
	}
	return []byte{2, byte(i >> 7 & 127), byte(i & 127)}
}

// shapes are encodings of a type that has facts: their payload, how many keys a fact has, and what a child has in it,
// if there are children.
type shapes struct {
	keys     int
	payload  []byte
	child    []byte // Behind the key.
	children bool
}

// shapesOf returns the shapes of a type, and whether it has facts.
func shapesOf(name string) (s shapes, facts bool) {
	inner, _ := strings.CutPrefix(name, "ormap[")
	switch {
	case strings.HasPrefix(name, "orset"), strings.HasPrefix(name, "ormultimap"):
		return shapes{keys: 1 + strings.Count(name, ",")}, true
	case strings.HasPrefix(name, "mvregister"):
		return shapes{payload: number(0)}, true
	case strings.HasPrefix(name, "lwwmap"):
		return shapes{keys: 1, payload: number(0, 0, 0)}, true
	case strings.HasPrefix(name, "pncountermap"):
		return shapes{keys: 1, payload: number(1, 0)}, true
	case inner == name:
		return s, false
	case strings.Contains(inner, "orset"):
		return shapes{keys: 1, children: true, child: number(1, 0, 1, 0, 1)}, true
	case strings.Contains(inner, "lwwmap"):
		return shapes{keys: 1, children: true, child: number(1, 0, 1, 0, 1, 0, 0, 0)}, true
	case strings.Contains(inner, "flag"):
		return shapes{keys: 1, payload: number(2, 1, 1)}, true
	case strings.Contains(inner, "pncounter"):
		return shapes{keys: 1, payload: number(5, 1, 1, 1, 1, 0)}, true
	case strings.Contains(inner, "gcounter"):
		return shapes{keys: 1, payload: number(4, 1, 1, 1, 1)}, true
	default: // A register.
		return shapes{keys: 1, payload: number(5, 1, 1, 0, 0, 0)}, true
	}
}

// inputs are dense encodings of a type.
func inputs(name string) map[string][]byte {
	all := map[string][]byte{
		"counts": joined(number(1), repeated(dense/2, func(int) []byte { return number(1, 1) })),
		"pairs":  joined(number(1), repeated(dense/3, func(int) []byte { return number(1, 1, 0) })),
		"keys":   joined(number(1), repeated(dense/3, func(i int) []byte { return key(name, i) })),
	}
	s, facts := shapesOf(name)
	if !facts {
		return all
	}
	of := func(i int) (b []byte) {
		for range s.keys {
			b = append(b, key(name, i)...)
		}
		return b
	}
	end := []byte(nil)
	if s.children {
		end = number(0)
	}
	const half = dense / 6
	seen := number(1, 1, 1, 1, 0, dense) // One origin, of which all events are seen.
	all["spans"] = joined(number(1, 1, 1), repeated(dense/2, func(i int) []byte { return number(min(1, uint64(i)), 0) }), number(0), end)
	all["origins"] = joined(number(1), repeated(dense/4, func(int) []byte { return number(1, 1, 0, 0) }), number(0), end)
	all["facts of a key"] = joined(seen, number(1), of(0), repeated(dense/3, func(i int) []byte { return joined(number(0, uint64(i)+1), s.payload) }), end)
	all["facts of two origins"] = joined(number(1), number(2, 1, 1, 0, dense, 1, 1, 0, dense), number(1), of(0),
		repeated(2*half, func(i int) []byte { return joined(number(uint64(i/half), uint64(i%half)+1), s.payload) }), end)
	if s.keys > 0 {
		all["facts of keys"] = joined(seen, repeated(dense/6, func(i int) []byte { return joined(of(i), number(1, 0, 1), s.payload) }), end)
	}
	if s.children {
		all["children"] = joined(seen, number(0), repeated(dense/8, func(i int) []byte { return joined(of(i), s.child) }))
	}
	return all
}

// What others send as a value costs no more than its bytes, times a number that the page about security says.
func TestDecodersAreFrugal(t *testing.T) {
	accepted := map[string]bool{}
	for _, typ := range crdt.Builtin() {
		all := inputs(typ.Name())
		for name, b := range all {
			if _, err := typ.Decode(b); err == nil {
				accepted[name] = true
			} else if _, facts := shapesOf(typ.Name()); facts && len(all) > 3 && name != "counts" && name != "pairs" && name != "keys" {
				t.Errorf("%s: %s: %v", typ.Name(), name, err)
			}
		}
		frugal.RequireFactor(t, perByte, func(b []byte) { _, _ = typ.Decode(b) }, all)
	}
	require.Len(t, accepted, 9, "each shape is a value of some type: %v", slices.Sorted(maps.Keys(accepted)))
}
