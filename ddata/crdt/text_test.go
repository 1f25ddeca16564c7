// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
)

// People can read a value of each type, and of none of them its fields.
func TestValuesAreReadable(t *testing.T) {
	for want, v := range map[string]fmt.Stringer{
		"3":                    crdt.GCounter{}.Add(1, 1).Add(2, 2),
		"-1":                   crdt.PNCounter{}.Add(1, -1),
		"true":                 crdt.Flag{}.Enable(),
		`["a" "b c"]`:          crdt.GSet[string]{}.Add("b c").Add("a"),
		"[7]":                  crdt.ORSet[int64]{}.Add(1, 7),
		`["x"]`:                crdt.MVRegister[[]byte]{}.Set(1, []byte("x")),
		`"x\n"`:                crdt.LWWRegister[string]{}.Set(1, 1, "x\n"),
		"":                     crdt.LWWRegister[string]{},
		`{"k": "v"}`:           crdt.LWWMap[string, string]{}.Put(1, 1, "k", "v"),
		`{"k": "e", "k": "f"}`: crdt.ORMultiMap[string, string]{}.Add(1, "k", "e").Add(1, "k", "f"),
		`{"k": -2, "l": 1}`:    crdt.PNCounterMap[string]{}.Add(1, "l", 1).Add(1, "k", -2),
		"{1: 5}":               crdt.VersionVector{}.Raise(1, 5),
		`{"k": ["e"]}`:         crdt.ORMap[string, crdt.ORSet[string]]{}.Update(1, "k", func(s crdt.ORSet[string]) crdt.ORSet[string] { return s.Add(1, "e") }),
		"[]":                   crdt.GSet[string]{},
		"{}":                   crdt.LWWMap[string, string]{},
	} {
		require.Equal(t, want, v.String())
		require.Equal(t, want, fmt.Sprint(v))
	}
	for _, typ := range crdt.Builtin() {
		require.Implements(t, (*fmt.Stringer)(nil), typ.Zero())
	}
}
