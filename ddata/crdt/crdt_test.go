// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
)

// What a removal has seen goes, on the side of another replica too.
func TestRemovalOfAKeyReachesAnotherReplica(t *testing.T) {
	var m crdt.ORMap[string, crdt.ORSet[string]]
	m = m.Update(1, "k", func(s crdt.ORSet[string]) crdt.ORSet[string] {
		return s.Add(1, "x").Add(1, "y").Remove("x")
	})
	d, _ := m.Delta()
	n := crdt.ORMap[string, crdt.ORSet[string]]{}.Merge(d)
	v, ok := n.Get("k")
	require.True(t, ok)
	require.Equal(t, []string{"y"}, slices.Collect(v.All()))
	n = n.Remove("k")
	d, _ = n.Delta()
	require.Zero(t, m.Merge(d).Len())
}

func TestDeltaOfOneElementIsAFewBytes(t *testing.T) {
	s := crdt.ORSet[string]{}
	for i := range 10_000 {
		s = s.Add(1, fmt.Sprintf("element-%012d", i))
	}
	require.Equal(t, 10_000, s.Len())
	for i := range 10_000 {
		require.True(t, s.Has(fmt.Sprintf("element-%012d", i)))
	}
	s = s.Settled().Add(1<<63, "element-000000000999")
	d, changed := s.Delta()
	require.True(t, changed)
	b, err := d.AppendBinary(nil)
	require.NoError(t, err)
	require.Less(t, len(b), 100)
}

// A node that reads the name of a type in a message finds one type for it, whose bottom
// has one form.
func TestBuiltinTypesHaveNamesOfTheirOwn(t *testing.T) {
	names := map[string]bool{}
	for _, kind := range crdt.Builtin() {
		require.False(t, names[kind.Name()], kind.Name())
		names[kind.Name()] = true
		raw, err := kind.Append(nil, kind.Zero())
		require.NoError(t, err)
		v, err := kind.Decode(raw)
		require.NoError(t, err)
		require.Equal(t, kind.Zero(), v, kind.Name())
	}
}
