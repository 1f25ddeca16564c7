// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

// A full delta that this process made is not checked again; its effect is the same as
// that of a delta with the same parts from another node.
func TestFullDeltaFromHereIsAsGoodAsOneFromOutside(t *testing.T) {
	t.Parallel()
	s := cluster(t, 5)
	s = s.Edit(node(0), func(e *gossip.Edit) {
		e.Mark(node(3), gossip.Unreachable)
		e.SetConfig([]gossip.NodeID{node(0), node(1)})
		e.Remove(node(4), time.UnixMilli(7))
	})
	made := s.DeltaTo(gossip.Digest{Clock: gossip.ClockRef{Base: 1}}) // A base that nobody knows.
	require.True(t, made.Full)
	outside := gossip.Delta{
		Cluster: made.Cluster, Full: true, Clock: made.Clock, Version: made.Version, Seen: made.Seen,
		Members: made.Members, Tombstones: made.Tombstones, Observers: made.Observers,
		Config: made.Config, Registers: made.Registers,
	}
	require.True(t, made.Equal(outside))
	for _, receiver := range []*gossip.State{gossip.New(gossip.ClusterID{}), cluster(t, 5), s} {
		x, err := receiver.Apply(made)
		require.NoError(t, err)
		y, err := receiver.Apply(outside)
		require.NoError(t, err)
		require.True(t, x.Equal(y))
		require.Equal(t, x.Digest(), y.Digest())
	}
}

func TestDeltasThatDifferAreNotEqual(t *testing.T) {
	t.Parallel()
	s := cluster(t, 4)
	full := s.DeltaTo(gossip.Digest{Clock: gossip.ClockRef{Base: 1}}) // A base that nobody knows.
	part := mark(s, 1, 2).DeltaTo(s.Digest())
	require.False(t, part.Full)
	require.True(t, part.Equal(mark(s, 1, 2).DeltaTo(s.Digest())))
	require.False(t, part.Equal(full))
	require.False(t, part.Equal(mark(s, 1, 3).DeltaTo(s.Digest())))
	for _, change := range []func(*gossip.Delta){
		func(d *gossip.Delta) { d.Cluster.Born++ },
		func(d *gossip.Delta) { d.Version++ },
		func(d *gossip.Delta) { d.From.Base++ },
		func(d *gossip.Delta) { d.Clock.Entries = nil },
		func(d *gossip.Delta) { d.Seen = nil },
		func(d *gossip.Delta) { d.Members = d.Members[1:] },
		func(d *gossip.Delta) { d.Config = nil },
		func(d *gossip.Delta) { d.Registers = &gossip.Registers{} },
	} {
		other := full
		change(&other)
		require.False(t, full.Equal(other))
	}
}

func TestWhatAStateSharesWithTheOneBefore(t *testing.T) {
	t.Parallel()
	s := cluster(t, 4)
	marked := mark(s, 1, 2)
	require.False(t, marked.SharesRows(s))
	require.Equal(t, []gossip.Row{{Subject: node(2), Status: gossip.Unreachable, Version: 1}}, marked.RowsOf(node(1)))
	require.Empty(t, marked.RowsOf(node(0)))
	require.True(t, marked.See(node(0)).SharesRows(marked))
	removed := s.Edit(node(0), func(e *gossip.Edit) { e.Remove(node(3), time.UnixMilli(7)) })
	require.Empty(t, marked.TombstonesSince(s))
	require.Empty(t, removed.TombstonesSince(removed))
	news := removed.TombstonesSince(s)
	require.Len(t, news, 1)
	require.Equal(t, node(3), news[0].Node)
}
