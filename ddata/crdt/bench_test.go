// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
)

func BenchmarkGCounterAdd(b *testing.B) {
	v := crdt.GCounter{}.Add(1, 1).Add(2, 1).Add(3, 1).Settled()
	b.ReportAllocs()
	for b.Loop() {
		v = v.Add(2, 1)
	}
}

// large is a set of ten thousand, filled at random.
func large() crdt.ORSet[string] { return filled(rand.New(rand.NewPCG(1, 1)).Perm(elements)) }

func BenchmarkORSetAdd(b *testing.B) {
	s := large()
	words := make([]string, 1000)
	for i := range words {
		words[i] = word(elements + i)
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		s.Add(1, words[i%len(words)])
	}
}

// The deltas are of one element added, of one that was there, and of one removed.
func BenchmarkORSetMergeDelta(b *testing.B) {
	s := large()
	for name, changed := range map[string]crdt.ORSet[string]{
		"added": s.Add(7, "new"), "again": s.Add(7, word(77)), "removed": s.Remove(word(77)),
	} {
		d, _ := changed.Delta()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Merge(d)
			}
		})
	}
}

func BenchmarkORSetMergeFull(b *testing.B) {
	s, o := large(), large().Add(7, "new").Settled()
	b.ReportAllocs()
	for b.Loop() {
		s.Merge(o)
	}
}

func BenchmarkORSetEncode(b *testing.B) {
	s, buffer := large(), []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		buffer, _ = s.AppendBinary(buffer[:0])
	}
	b.ReportMetric(float64(len(buffer))/elements, "wire-B/element")
}

func BenchmarkORSetDecode(b *testing.B) {
	raw, err := large().AppendBinary(nil)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		var s crdt.ORSet[string]
		if s.UnmarshalBinary(raw) != nil {
			b.Fatal("does not decode")
		}
	}
}

// One element is added to one set of a map of sets.
func BenchmarkORMapMergeDelta(b *testing.B) {
	var m mapOfSets
	add := func(i int, e string) {
		m = m.Update(1, strconv.Itoa(i), func(s crdt.ORSet[string]) crdt.ORSet[string] { return s.Add(1, e) })
	}
	for i := range elements {
		add(i%1000, word(i))
		m = m.Settled()
	}
	before := m
	add(500, "new")
	d, _ := m.Delta()
	b.ReportAllocs()
	for b.Loop() {
		before.Merge(d)
	}
}

func BenchmarkORSetMemory(b *testing.B) {
	order := rand.New(rand.NewPCG(1, 1)).Perm(elements)
	for b.Loop() {
		b.ReportMetric(live(b, 4, func(int) any { return filled(order) })/elements-letters, "heap-B/element")
	}
}
