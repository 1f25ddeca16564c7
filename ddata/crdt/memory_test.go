// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
)

// live returns the bytes of the heap that one of n values takes: what is left after
// collection with the values and without.
func live(tb testing.TB, n int, construct func(i int) any) float64 {
	tb.Helper()
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // The second one sweeps what the first one found.
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	values := make([]any, n)
	before := heap()
	for i := range values {
		values[i] = construct(i)
	}
	after := heap()
	runtime.KeepAlive(values)
	return (after - before) / float64(n)
}

// elements is the size of a large set, letters the length of each element.
const (
	elements = 10_000
	letters  = 20
)

// word returns the element of a number, in an order that is none.
func word(i int) string { return fmt.Sprintf("%0*x", letters, uint64(i+1)*0x9e3779b97f4a7c15) }

// filled returns a set that was filled element by element.
func filled(order []int) crdt.ORSet[string] {
	var s crdt.ORSet[string]
	for _, i := range order {
		s = s.Add(crdt.Origin(1+i%3), word(i)).Settled()
	}
	return s
}

// A set of ten thousand costs its strings and 48 bytes an element, whether it was filled in
// order, at random, with removals between, or decoded.
func TestLargeSetCostsItsStringsAnd48BytesAnElement(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1)).Perm(elements)
	ordered := make([]int, elements)
	for i := range ordered {
		ordered[i] = i
	}
	raw, err := filled(random).AppendBinary(nil)
	require.NoError(t, err)
	for name, construct := range map[string]func(int) any{
		"in order":  func(int) any { return filled(ordered) },
		"at random": func(int) any { return filled(random) },
		"with removals": func(int) any {
			s := filled(random)
			for i := range elements {
				s = s.Add(9, word(elements+i)).Settled()
			}
			for i := range elements {
				s = s.Remove(word(i)).Settled()
			}
			return s
		},
		"decoded": func(int) any {
			var s crdt.ORSet[string]
			require.NoError(t, s.UnmarshalBinary(raw))
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			each := live(t, 4, construct)/elements - letters
			t.Logf("%.1f bytes an element beside its string", each)
			require.Positive(t, each)
			require.LessOrEqual(t, each, 48.0)
		})
	}
}

// A counter of three origins takes less than a hundred bytes, in one allocation, so that a
// million of them is no burden.
func TestCounterIsSmall(t *testing.T) {
	gcounter := func(i int) any {
		return crdt.GCounter{}.Add(1, uint64(i)+1).Add(1<<60, 2).Add(3, 3).Settled()
	}
	pncounter := func(i int) any {
		return crdt.PNCounter{}.Add(1, int64(i)+1).Add(1<<60, -2).Add(3, 3).Add(1, -9).Settled()
	}
	for name, construct := range map[string]func(int) any{"gcounter": gcounter, "pncounter": pncounter} {
		each := live(t, 20_000, construct)
		t.Logf("%s: %.1f bytes", name, each)
		require.Less(t, each, 100.0, name)
	}
	v := pncounter(1).(crdt.PNCounter)
	var kept crdt.PNCounter
	require.Equal(t, 1, int(testing.AllocsPerRun(100, func() { kept = v.Add(3, 1) })))
	require.EqualValues(t, -5, kept.Value())
}

// A set of a million, as another node may send it, with an element of a mebibyte, is
// decoded, changed and merged by its delta like any other.
// covers B36.
func TestSetOfAMillion(t *testing.T) {
	const n = 1_000_000
	raw := binary.AppendUvarint([]byte{1, 1, 1, 1, 0}, n-1) // Seen: n events of origin one.
	raw = binary.AppendUvarint(raw, n)
	for i := range uint64(n) {
		raw = binary.BigEndian.AppendUint64(append(raw, 8), i) // The element,
		raw = binary.AppendUvarint(append(raw, 1, 0), i+1)     // and its one event.
	}
	var s crdt.ORSet[string]
	require.NoError(t, s.UnmarshalBinary(raw))
	require.Equal(t, n, s.Len())
	again, err := s.AppendBinary(nil)
	require.NoError(t, err)
	require.True(t, bytes.Equal(raw, again))

	first, long := string(make([]byte, 8)), strings.Repeat("x", 1<<20)
	require.True(t, s.Has(first))
	changed := s.Remove(first).Add(2, long)
	d, is := changed.Delta()
	require.True(t, is)
	merged := s.Merge(d)
	require.False(t, merged.Has(first))
	require.True(t, merged.Has(long))
	require.Equal(t, n, merged.Len())
	require.Equal(t, n, s.Len())
}

// Adding to a large set copies a path of its tree and shares the rest.
func TestAddingToALargeSetCopiesLittle(t *testing.T) {
	s := filled(rand.New(rand.NewPCG(1, 1)).Perm(elements))
	i, n := 0, 100
	each := live(t, n, func(int) any {
		i++
		return s.Add(1, word(elements+i)).Settled()
	})
	t.Logf("%.0f bytes for a set with one element more", each)
	require.Less(t, each, 6_000.0)
}
