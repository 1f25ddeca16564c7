// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// upNumbers, times, clusters, voters and strategies are values of each sort of register in
// their order. Neighbours differ in one thing, so that each thing that is compared decides
// somewhere.

func upNumbers() []highest[UpNumber] { return []highest[UpNumber]{{0}, {1}, {100_000}} }

func times() []highest[millis] { return []highest[millis]{{0}, {1}, {LatestBirth}} }

func clusters() []highest[ClusterID] {
	return []highest[ClusterID]{{}, {ClusterID{Born: 1}}, {ClusterID{Born: 1, Nonce: 1}}, {ClusterID{Born: 2}}}
}

func yields() []highest[Yield] {
	at := [YieldAddresses]Address{{Host: "a", Port: 1}}
	return []highest[Yield]{{}, {Yield{To: ClusterID{Born: 1}}}, {Yield{To: ClusterID{Born: 1}, At: at}}, {Yield{To: ClusterID{Born: 2}}}}
}

func voters() (all []written[Voters, *Voters]) {
	list, data := []NodeID{{UID: 1}, {UID: 2}}, []DataID{7, 9}
	for _, v := range []Voters{
		{},
		{Gen: 1, By: 1, Voters: list},
		{Gen: 1, By: 1, Voters: list, PreviousData: data},
		{Gen: 1, By: 1, Voters: list, Data: data},
		{Gen: 1, By: 1, Voters: list, Previous: list[:1]},
		{Gen: 1, By: 1, Voters: list[1:]},
		{Gen: 1, By: 2},
		{Gen: 2},
	} {
		all = append(all, written[Voters, *Voters]{}.write(&v))
	}
	return all
}

func strategies() (all []written[DowningRegister, *DowningRegister]) {
	add := func(gen uint64, now, before DowningStrategy) {
		all = append(all, written[DowningRegister, *DowningRegister]{}.write(&DowningRegister{Gen: gen, DowningStrategy: now, Previous: before}))
	}
	add(0, DowningStrategy{}, DowningStrategy{})
	add(1, DowningStrategy{Name: "a"}, DowningStrategy{})
	add(1, DowningStrategy{Name: "a"}, DowningStrategy{Name: "b"})
	add(1, DowningStrategy{Name: "a", MajorityOnly: true}, DowningStrategy{})
	add(1, DowningStrategy{Name: "a", Pure: true}, DowningStrategy{})
	add(1, DowningStrategy{Name: "a", Parameters: "p"}, DowningStrategy{})
	add(1, DowningStrategy{Name: "a", Version: "1"}, DowningStrategy{})
	add(1, DowningStrategy{Name: "b"}, DowningStrategy{})
	add(2, DowningStrategy{Name: "a"}, DowningStrategy{})
	return all
}

// requireJoin proves over all triples of values, which are in their order, that a join is
// one: associative, commutative, idempotent, and monotone, which is that it holds its
// operands and keeps their order; and that of two values the later one holds.
func requireJoin[R comparable](t *testing.T, inOrder []R, join func(a, b R) R) {
	t.Helper()
	for i, a := range inOrder {
		require.True(t, is(join(a, a), a), "idempotent")
		for j, b := range inOrder {
			require.True(t, is(join(a, b), inOrder[max(i, j)]), "%d and %d: the later one", i, j)
			require.True(t, is(join(a, b), join(b, a)), "commutative")
			require.True(t, is(join(join(a, b), a), join(a, b)), "holds its operands")
			for _, c := range inOrder {
				require.True(t, is(join(join(a, b), c), join(a, join(b, c))), "associative")
				more := join(join(a, b), c)
				require.True(t, is(join(more, join(a, c)), more), "keeps their order")
			}
		}
	}
}

// is tells whether two registers are one, down to the memory of what they hold.
func is[R comparable](a, b R) bool { return a == b }

func TestJoinsOfRegistersAreJoins(t *testing.T) {
	t.Run("up-number", func(t *testing.T) { requireJoin(t, upNumbers(), highest[UpNumber].join) })
	t.Run("time", func(t *testing.T) { requireJoin(t, times(), highest[millis].join) })
	t.Run("cluster", func(t *testing.T) { requireJoin(t, clusters(), highest[ClusterID].join) })
	t.Run("voters", func(t *testing.T) { requireJoin(t, voters(), written[Voters, *Voters].join) })
	t.Run("downing strategy", func(t *testing.T) { requireJoin(t, strategies(), written[DowningRegister, *DowningRegister].join) })
}

func unknowns() []highest[Unknown] {
	return []highest[Unknown]{{}, {Unknown{Version: 1}}, {Unknown{Version: 1, Fields: "\x18\x01"}}, {Unknown{Version: 2}}}
}

// The registers of a state obey the laws as a whole: none is forgotten, or mixed up with
// another of its sort.
func TestRegistersJoinAsAWhole(t *testing.T) {
	draw := func(t *rapid.T, label string) registers {
		return registers{
			cluster: rapid.SampledFrom(clusters()).Draw(t, label+".cluster"), lastUp: rapid.SampledFrom(upNumbers()).Draw(t, label+".last"),
			pruned: rapid.SampledFrom(times()).Draw(t, label+".pruned"), epochs: rapid.SampledFrom(times()).Draw(t, label+".epochs"),
			yielded: rapid.SampledFrom(yields()).Draw(t, label+".yielded"), unknown: rapid.SampledFrom(unknowns()).Draw(t, label+".unknown"),
			config: rapid.SampledFrom(voters()).Draw(t, label+".voters"), downing: rapid.SampledFrom(strategies()).Draw(t, label+".downing"),
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := draw(t, "a"), draw(t, "b"), draw(t, "c")
		join := func(x, y registers) registers { return x.join(&y) }
		same := func(x, y registers, law string) { require.True(t, x.equalRegisters(&y), law) }
		same(join(join(a, b), c), join(a, join(b, c)), "associative")
		same(join(a, b), join(b, a), "commutative")
		ab, abc := join(a, b), join(join(a, b), c)
		require.True(t, is(join(a, a), a) && is(join(ab, b), ab), "what adds nothing changes no memory")
		same(join(ab, a), ab, "holds its operands")
		same(join(abc, join(a, c)), abc, "keeps their order")
	})
}

// Each register is joined, and makes states differ.
func TestEachRegisterCounts(t *testing.T) {
	each := []registers{
		{},
		{cluster: clusters()[1]},
		{lastUp: upNumbers()[1]},
		{pruned: times()[1]},
		{epochs: times()[1]},
		{yielded: yields()[1]},
		{unknown: unknowns()[1]},
		{config: voters()[1]},
		{downing: strategies()[1]},
	}
	require.Len(t, each, 1+reflect.TypeFor[registers]().NumField(), "a register is missing here")
	for i, a := range each {
		for j, b := range each {
			require.Equal(t, i == j, a.equalRegisters(&b), "%d and %d", i, j)
			both := a.join(&b)
			require.Equal(t, i == j || j == 0, both.equalRegisters(&a), "%d with %d", i, j)
		}
	}
}

// Equal records are one, wherever they come from; the zero one was never written.
func TestEqualRecordsAreOne(t *testing.T) {
	for i, v := range voters() {
		twin := v.get()
		twin.Voters, twin.Data = slices.Clone(twin.Voters), slices.Clone(twin.Data)
		other := v.write(&twin)
		require.Zero(t, v.compare(other))
		require.Equal(t, i > 0, other.record != nil)
		require.True(t, is(v.join(other), v), "what adds nothing changes no memory")
	}
	var never written[Voters, *Voters]
	require.Equal(t, Voters{}, never.get())
	require.Equal(t, &Voters{}, never.orZero())
}

// A register that only rises takes what is greater, and says so.
func TestARegisterThatOnlyRises(t *testing.T) {
	for i, now := range clusters() {
		for j, to := range clusters() {
			r := now
			require.Equal(t, j > i, r.raise(to.value))
			require.Equal(t, clusters()[max(i, j)], r)
		}
	}
}
