// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// resharded tells a node that its kind is to have a number of shards, and returns the refusal.
func resharded(n *peer, shards uint32) string {
	id := uint64(len(published[control.ReshardAnswered](n)) + 1)
	n.step(control.Reshard{Kind: "k", Shards: shards, ID: id})
	n.f.run(10 * latency)
	all := published[control.ReshardAnswered](n)
	require.Len(n.f.t, all, int(id), "a command is answered")
	require.Equal(n.f.t, id, all[id-1].ID)
	return all[id-1].Refusal
}

// The former shards are retired one after the other, with the positions of their streams, while those of
// the next layout serve already; in the end only the next layout is in force, everywhere.
func TestTheNumberOfShardsChanges(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, six())
	require.Empty(t, resharded(nodes[1], 9), "any node may be asked")
	f.run(20 * time.Second)
	f.settled(9, nodes...)
	next := protocol.Layout{Number: 1, Shards: 9}
	for _, n := range nodes {
		require.Equal(t, []protocol.Layout{next}, n.layouts)
		require.Len(t, n.retired, 6)
		for s, r := range n.retired {
			require.True(t, r.Known, "shard %d", s)
			require.Equal(t, []protocol.Position{{Origin: writer, Seq: uint64(s) + 1}}, r.Positions)
		}
		for _, h := range n.Inspect("k").Homes {
			require.True(t, next.Has(h.Shard))
		}
	}
	require.Equal(t, []string{
		"k: begins: from 6 to 9 shards: an operator has asked for it",
		"k: ends: from 6 to 9 shards: every region knows that the former are retired",
	}, nodes[0].decided("reshard"))
	retired := 0
	for _, m := range nodes[0].Moves("k") {
		if m.Outcome == control.OutcomeRetired {
			require.Equal(t, "retired, not moved: the kind gets 9 shards instead of 6", m.Reason)
			retired++
		}
	}
	require.Equal(t, 6, retired)

	require.Empty(t, resharded(nodes[2], 4), "it can change again")
	f.run(20 * time.Second)
	f.settled(4, nodes...)
	require.Equal(t, []protocol.Layout{{Number: 2, Shards: 4}}, nodes[0].layouts)
}

// What a change cannot be is refused, and says why.
func TestChangesThatAreRefused(t *testing.T) {
	f := newFleet(t)
	f.stops = func(protocol.ShardID) time.Duration { return -1 }
	nodes := f.cluster(2, six())
	require.Equal(t, "the kind has 6 shards", resharded(nodes[1], 6))
	require.Equal(t, "a kind has 1 to 65536 shards", resharded(nodes[1], 0))
	require.Equal(t, "a kind has 1 to 65536 shards", resharded(nodes[0], 65537))
	require.Empty(t, resharded(nodes[0], 3))
	require.Equal(t, "a change is under way: from 6 to 3 shards, and 0 of the former are retired", resharded(nodes[1], 12))
	nodes[0].step(control.Move{Kind: "k", Shard: 1, To: nodes[1].id, ID: 9})
	f.run(10 * latency)
	require.Len(t, nodes[0].Inspect("k").Layouts, 2)
	nodes[0].step(control.Explain{Kind: "k", Shard: 1, ID: 1})
	said := published[control.ShardExplanation](nodes[0])
	require.Equal(t, "the number of shards changes: from 6 to 3 shards, and 0 of the former are retired", said[len(said)-1].Detail)
	require.Equal(t, "retired, not moved: the kind gets 3 shards instead of 6", said[len(said)-1].Reason)

	fixed := six()
	fixed.Fixed = true
	g := newFleet(t)
	others := g.cluster(2, fixed)
	require.Contains(t, resharded(others[1], 3), "these nodes cannot follow")
	oldest := six()
	oldest.OnOldest = true
	h := newFleet(t)
	require.Equal(t, "the kind lives at one node as a whole", resharded(h.cluster(2, oldest)[0], 3))
}

// The next coordinator goes on where the last one was: with the shards that are retired, their positions,
// and what a home that died leaves unknown.
func TestTheNextCoordinatorGoesOnWithAChange(t *testing.T) {
	f := newFleet(t)
	stops := map[protocol.ShardID]bool{0: true, 1: true, 2: true}
	f.stops = func(s protocol.ShardID) time.Duration {
		if stops[s] {
			return 10 * time.Millisecond
		}
		return -1
	}
	nodes := f.cluster(4, six())
	var late gossip.NodeID // It hears of no map from now on.
	f.drop = func(_, to gossip.NodeID, m control.Message) bool {
		_, is := m.(control.Map)
		return is && to == late
	}
	require.Empty(t, resharded(nodes[0], 9))
	late = nodes[3].id
	f.run(10 * time.Second)
	require.Empty(t, nodes[3].retired)
	require.Equal(t, 3, nodes[1].Inspect("k").Gone, "those that stop")
	f.remove(nodes[0])
	f.fence(nodes[0])
	late = gossip.NodeID{}
	f.run(10 * time.Second)
	require.Len(t, nodes[1].Inspect("k").Layouts, 2, "the change goes on")
	for s := range stops {
		r, told := nodes[3].retired[s]
		require.True(t, told)
		require.True(t, r.Known, "others have kept the positions for who did not hear of shard %d", s)
		require.Equal(t, []protocol.Position{{Origin: writer, Seq: uint64(s) + 1}}, r.Positions)
	}
	f.stops = func(protocol.ShardID) time.Duration { return 10 * time.Millisecond }
	f.run(5 * time.Minute)
	f.settled(9, nodes[1:]...)
}

// A node that joins may be configured for any number that the kind has had, and for no other.
func TestNodesThatJoinWithANumberOfThePast(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	require.Empty(t, resharded(nodes[0], 9))
	f.run(20 * time.Second)
	kind := six()
	kind.Settings.Shards = 9
	third := f.start(3, kind)
	fourth := f.start(4, six())
	kind.Settings.Shards = 8
	fifth := f.start(5, kind)
	f.run(time.Minute)
	f.settled(9, append(nodes, third, fourth)...)
	require.NotEmpty(t, third.hosts())
	require.NotEmpty(t, fourth.hosts())
	refused := published[control.KindRefused](fifth)
	require.NotEmpty(t, refused)
	require.Equal(t, "number-of-shards", refused[0].Refusal.Setting)

	// The newcomers know what to do when they coordinate.
	for _, n := range nodes {
		f.remove(n)
		f.fence(n)
	}
	f.remove(fifth)
	f.fence(fifth)
	f.run(time.Minute)
	f.settled(9, third, fourth)
}

// No region of an earlier release takes part once there was a change: it would look for entities where
// they are no more.
func TestRegionsThatCannotFollowAreRefused(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	require.Empty(t, resharded(nodes[0], 9))
	f.run(20 * time.Second)
	old := f.puppet(3)
	old.say(nodes[0], control.Register{Kind: "k", Registration: control.Registration{Settings: six().Settings, Number: 1}})
	require.Equal(t, "number-of-shards", last[control.SettingsRefused](t, old).Setting)
}

// A node that leaves in the middle hands nothing over: what it has of the former layout is retired first.
func TestANodeThatLeavesInTheMiddleOfAChange(t *testing.T) {
	f := newFleet(t)
	kind := six()
	kind.Settings.Shards, kind.MaxSimultaneous, kind.MaxSimultaneousPerRegion = 60, 1, 1
	f.stops = func(protocol.ShardID) time.Duration { return time.Second }
	nodes := f.cluster(3, kind)
	require.Empty(t, resharded(nodes[0], 90))
	f.run(2 * time.Second)
	f.set(gossip.Leaving, nodes[2])
	f.run(20 * time.Second)
	require.True(t, nodes[2].left)
	require.Empty(t, nodes[2].hosts())
	for _, m := range nodes[0].Moves("k") {
		require.Equal(t, m.Shard.Layout() == 0, m.Outcome == control.OutcomeRetired, "a former shard does not move: %+v", m)
	}
	f.remove(nodes[2])
	f.fence(nodes[2])
	f.run(5 * time.Minute)
	f.settled(90, nodes[:2]...)
}

// A region that has missed maps is told of all retirements, with the positions, and until it has heard of
// them no further shard is stopped, and the former layout stays.
func TestARegionThatMissedMapsHearsOfRetirements(t *testing.T) {
	f := newFleet(t)
	kind := six()
	kind.Settings.Shards, kind.MaxSimultaneous = 40, 5
	nodes := f.cluster(3, kind)
	require.Empty(t, resharded(nodes[0], 50))
	deaf := true
	f.drop = func(_, to gossip.NodeID, m control.Message) bool {
		_, is := m.(control.Map)
		return is && deaf && to == nodes[2].id
	}
	f.run(20 * time.Second)
	gone := nodes[1].Inspect("k").Gone
	require.NotZero(t, gone)
	require.Less(t, gone, 20, "the next ones wait for the region that hears nothing")
	require.Less(t, len(nodes[2].retired), gone)
	deaf = false
	f.run(time.Minute)
	f.settled(50, nodes...)
	require.Len(t, nodes[2].retired, 40)
	for s, r := range nodes[2].retired {
		require.True(t, r.Known, "shard %d", s)
	}
}
