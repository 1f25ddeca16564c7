// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package handoff_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/handoff"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

func snapshot(entity string, size int) protocol.Snapshot {
	return protocol.Snapshot{Entity: entity, Data: make([]byte, size)}
}

// A snapshot is given out once, and what goes to the next home is there no more.
func TestASnapshotIsGivenOutOnce(t *testing.T) {
	b := handoff.New(handoff.Limits{Entity: 10, Shard: 1000})
	require.Equal(t, protocol.LossNone, b.Put(1, snapshot("b", 2)))
	require.Equal(t, protocol.LossNone, b.Put(1, snapshot("a", 1)))
	require.Equal(t, protocol.LossNone, b.Put(1, snapshot("c", 3)))
	require.Len(t, b.Take("c"), 3)
	require.Nil(t, b.Take("c"))
	all := b.End()
	require.Equal(t, []protocol.Snapshot{snapshot("a", 1), snapshot("b", 2)}, all)
	require.Zero(t, b.Len())
	require.Empty(t, b.End())

	next := handoff.New(handoff.Limits{Entity: 10, Shard: 1000})
	next.Put(1, snapshot("old", 1))
	require.Empty(t, next.Begin(2, all))
	require.Nil(t, next.Take("old"), "what comes takes the place of what was there")
	require.Len(t, next.Take("b"), 2)
	require.Equal(t, 1, next.Len())
}

// The limits hold for one snapshot, and for all together; a later snapshot of an entity takes the
// place of the one before.
func TestLimits(t *testing.T) {
	one := snapshot("a", 10).Size()
	b := handoff.New(handoff.Limits{Entity: 10, Shard: 2 * one})
	require.Equal(t, protocol.LossTooLarge, b.Put(1, snapshot("a", 11)))
	require.Equal(t, protocol.LossNone, b.Put(1, snapshot("a", 10)))
	require.Equal(t, protocol.LossNone, b.Put(1, snapshot("b", 10)))
	require.Equal(t, protocol.LossNoRoom, b.Put(1, snapshot("c", 1)))
	require.Equal(t, protocol.LossNone, b.Put(1, snapshot("b", 9)))
	require.Equal(t, protocol.LossNone, b.Put(1, snapshot("d", 0)), "nothing to take along is no loss")
	require.Equal(t, protocol.LossFailed, b.Put(1, protocol.Snapshot{Entity: "b", Loss: protocol.LossFailed}))
	require.Nil(t, b.Take("b"), "the memory of an earlier instance is not kept")
	require.Equal(t, protocol.LossNone, b.Put(1, snapshot("c", 10)))

	none := handoff.New(handoff.Limits{})
	require.Equal(t, protocol.LossTooLarge, none.Put(1, snapshot("a", 1)))
}

// Losses are remembered, the latest, and go to the next home, but not on from there.
func TestLossesAreRemembered(t *testing.T) {
	b := handoff.New(handoff.Limits{Entity: 10, Shard: 1000})
	for i := range 20 {
		b.Lose(machine.Instant(i), fmt.Sprint(i), protocol.LossFailed)
	}
	_, known := b.LossOf("3")
	require.False(t, known)
	lost, known := b.LossOf("19")
	require.True(t, known)
	require.Equal(t, protocol.LossFailed, lost.Loss)
	require.Equal(t, machine.Instant(19), lost.At)
	b.Put(20, snapshot("19", 1))
	_, known = b.LossOf("19")
	require.False(t, known, "it has its memory")
	all := b.End()
	require.Len(t, all, 16)

	all = append(all, protocol.Snapshot{Entity: "late", Loss: protocol.LossOnTheWay})
	require.Equal(t, []string{"late"}, b.Begin(30, all), "the others were counted where they came about")
	lost, known = b.LossOf("18")
	require.True(t, known)
	require.Equal(t, machine.Instant(30), lost.At)
	require.Len(t, b.End(), 1)
}

// What nobody asks for is dropped after a time, counted from the beginning of the hosting or the last
// snapshot.
func TestSnapshotsExpire(t *testing.T) {
	b := handoff.New(handoff.Limits{Entity: 10, Shard: 1000})
	start := machine.Instant(0)
	b.Begin(start, []protocol.Snapshot{snapshot("b", 1), snapshot("a", 1)})
	require.Empty(t, b.Expire(start.Add(time.Minute), 0), "kept for ever")
	require.Empty(t, b.Expire(start.Add(time.Minute-1), time.Minute))
	require.Equal(t, []string{"a", "b"}, b.Expire(start.Add(time.Minute), time.Minute))
	require.Zero(t, b.Len())
	lost, _ := b.LossOf("a")
	require.Equal(t, protocol.LossIdle, lost.Loss)
	require.Equal(t, protocol.LossNone, b.Put(1, snapshot("a", 10)))
}
