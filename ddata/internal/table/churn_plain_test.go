// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package table_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/internal/table"
)

// Keys that are made, spread, deleted and swept, many at a time and under names of their own,
// leave nothing behind: neither do the counts say that anything is there, nor do the last of
// them take more memory than the first.
func TestKeysThatComeAndGoLeaveNothing(t *testing.T) {
	const rounds, each = 6, 30_000
	tab := newTable(1)
	var first int64
	for round := range uint64(rounds) {
		key := func(i int) string { return fmt.Sprintf("key-%d-%d", round, i) }
		for i := range each {
			_, err := tab.Update(key(i), counterType, increment)
			require.NoError(t, err)
		}
		told(tab)
		for i := range each {
			_, err := tab.Delete(key(i), round)
			require.NoError(t, err)
		}
		told(tab)
		tab.Confirm(round+1, round)
		tab.Sweep(round+1, nil)
		told(tab)
		require.Zero(t, tab.Stats())
		require.Empty(t, tab.Origins())
		if heap := liveHeap(); round == 0 {
			first = heap
		} else {
			require.Less(t, heap-first, int64(each), "after round %d, at most a byte for each key of a round", round)
		}
	}
}

// A table of which all keys but a few in each bucket are swept takes hardly more memory than one
// that never had others.
func TestATableThatHasShrunkGivesItsRoomBack(t *testing.T) {
	const all, left = 100_000, 10_000
	fill := func(n int) *table.Table {
		tab := newTable(1)
		for i := range n {
			_, err := tab.Update(fmt.Sprintf("key-%d", i), counterType, increment)
			require.NoError(t, err)
		}
		told(tab)
		return tab
	}
	before := liveHeap()
	small := fill(left)
	needed := liveHeap() - before

	before = liveHeap()
	large := fill(all)
	grown := liveHeap() - before
	for i := left; i < all; i++ {
		_, err := large.Delete(fmt.Sprintf("key-%d", i), 1)
		require.NoError(t, err)
	}
	large.Confirm(2, 1)
	large.Sweep(2, nil)
	told(large)
	require.Equal(t, small.Stats(), large.Stats())
	shrunk := liveHeap() - before
	runtime.KeepAlive(small)
	runtime.KeepAlive(large)
	t.Logf("%d keys took %d bytes; %d were left, which took %d bytes, and %d in a table of their own", all, grown, left, shrunk, needed)
	require.Less(t, shrunk, needed+needed/4)
}

// told takes everything out of a table that is to be spread, and that subscribers and the
// disk have to hear of.
func told(tab *table.Table) {
	for len(tab.Pending(1<<20)) > 0 || len(tab.Changed(1<<16)) > 0 {
		continue
	}
}
