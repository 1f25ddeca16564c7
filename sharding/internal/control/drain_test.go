// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// drained tells a node to host nothing, or to host again.
func drained(n *peer, on bool) { n.step(control.Drain{On: on}) }

// vacated returns how often a node has published that it hosts nothing.
func vacated(n *peer) int { return len(published[control.NodeDrained](n)) }

// hostsNone reports whether no home of a kind is at a node, as far as the other one knows.
func hostsNone(at, other *peer) bool {
	for _, h := range at.Inspect("k").Homes {
		if h.Node == other.id {
			return false
		}
	}
	return true
}

// The shards of a drained node move to the others, with their streams; it stays a member, and
// hosts nothing until it is told to host again.
func TestADrainedNodeHostsNothing(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, six())
	before := nodes[0].Inspect("k").Homes
	require.NotEmpty(t, nodes[2].hosts())
	drained(nodes[2], true)
	f.run(2 * time.Second)
	f.settled(6, nodes...)
	require.Empty(t, nodes[2].hosts())
	require.True(t, hostsNone(nodes[0], nodes[2]))
	require.Equal(t, 1, vacated(nodes[2]))
	require.False(t, nodes[2].left)
	for _, h := range nodes[0].Inspect("k").Homes {
		require.Equal(t, before[h.Shard].Base, h.Base, "the streams go on")
	}
	require.Contains(t, nodes[0].decided("handoff"), "k: stop: "+nodes[2].id.String()+" is drained and hosts 2 shards")

	f.run(time.Minute)
	require.Empty(t, nodes[2].hosts(), "no round to even out the load brings shards back")
	drained(nodes[2], false)
	f.run(time.Minute)
	require.NotEmpty(t, nodes[2].hosts())
}

// A coordinator that starts later knows who is drained from the reports and registrations.
func TestTheNextCoordinatorKnowsWhoIsDrained(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(4, six())
	drained(nodes[3], true)
	f.run(2 * time.Second)
	require.Empty(t, nodes[3].hosts())
	f.remove(nodes[0])
	f.fence(nodes[0])
	f.run(time.Minute)
	f.settled(6, nodes[1:]...)
	require.Empty(t, nodes[3].hosts())
}

// When all nodes are drained, no shard goes without a home: it is as if none were.
func TestAllNodesAreDrained(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, six())
	for _, n := range nodes {
		drained(n, true)
	}
	f.run(time.Minute)
	f.settled(6, nodes...)
	moves := len(nodes[0].Moves("k"))
	f.run(time.Minute)
	require.Len(t, nodes[0].Moves("k"), moves, "drained nodes hand nothing to and fro")
	nodes[0].step(control.Explain{Kind: "k", Shard: 3, ID: 1})
	said := published[control.ShardExplanation](nodes[0])
	require.Equal(t, "stays at a drained node while no other can host it", said[len(said)-1].Detail)

	f.remove(nodes[2])
	f.fence(nodes[2])
	f.run(10 * time.Second)
	f.settled(6, nodes[:2]...)
	before := vacated(nodes[0])
	drained(nodes[1], false)
	f.run(10 * time.Second)
	require.Len(t, nodes[1].hosts(), 6)
	require.Equal(t, before+1, vacated(nodes[0]))
}

// stops returns how many shards a node was told to stop.
func stops(n *peer) int {
	times := 0
	for _, in := range n.told {
		if _, ok := in.(protocol.StopHosting); ok {
			times++
		}
	}
	return times
}

// Who changes his mind in the middle keeps the shards whose stop has not begun.
func TestADrainIsTakenBackInTheMiddle(t *testing.T) {
	f := newFleet(t)
	f.stops = func(protocol.ShardID) time.Duration { return -1 }
	kind := six()
	kind.Settings.Shards = 200
	nodes := f.cluster(2, kind)
	hosted := len(nodes[1].hosts())
	drained(nodes[1], true)
	f.run(100 * time.Millisecond)
	begun := stops(nodes[1])
	require.Positive(t, begun)
	require.Less(t, begun, hosted)
	drained(nodes[1], false)
	f.run(time.Minute)
	require.Equal(t, begun, stops(nodes[1]), "no stop is ordered any more")
	require.Len(t, nodes[1].hosts(), hosted, "those that were are taken back")
}

// A kind on the oldest node goes to the next oldest when that is drained, and does not come back
// for nothing.
func TestTheOldestIsDrained(t *testing.T) {
	f := newFleet(t)
	kind := six()
	kind.OnOldest = true
	nodes := f.cluster(3, kind)
	require.Len(t, nodes[0].hosts(), 6)
	drained(nodes[0], true)
	f.run(2 * time.Second)
	require.Empty(t, nodes[0].hosts())
	require.Len(t, nodes[1].hosts(), 6)
	drained(nodes[0], false)
	f.run(time.Minute)
	require.Len(t, nodes[1].hosts(), 6)
}

// When the oldest hosts again before all of the kind has moved, the kind comes together where most
// of it is, counting what was on its way.
func TestAKindThatWasSplitComesTogether(t *testing.T) {
	f := newFleet(t)
	kind := six()
	kind.OnOldest, kind.Settings.Shards = true, 100
	nodes := f.cluster(2, kind)
	drained(nodes[0], true)
	f.run(15 * time.Millisecond)
	require.NotEmpty(t, nodes[0].hosts())
	require.NotEmpty(t, nodes[1].hosts())
	drained(nodes[0], false)
	f.run(time.Minute)
	f.settled(100, nodes...)
	require.Contains(t, []int{0, 100}, len(nodes[0].hosts()))
}

// A kind on one node stays where it is while that node has no standing: where all links were cut for a
// moment, the coordinator has its own again before it hears that the host has.
func TestAKindStaysWithAHostWithoutStanding(t *testing.T) {
	f := newFleet(t)
	kind := six()
	kind.OnOldest = true
	nodes := f.cluster(3, kind)
	drained(nodes[0], true)
	f.run(2 * time.Second)
	drained(nodes[0], false)
	f.run(time.Minute)
	require.Len(t, nodes[1].hosts(), 6)
	nodes[1].step(component.Standing{Until: 0})
	f.run(time.Minute)
	require.Len(t, nodes[1].hosts(), 6)
	nodes[1].step(component.Standing{Until: machine.Never})
	f.run(time.Minute)
	require.Len(t, nodes[1].hosts(), 6)
}

// Who asks again is told again.
func TestADrainThatIsRepeated(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	drained(nodes[1], true)
	f.run(2 * time.Second)
	drained(nodes[1], true)
	require.Equal(t, 2, vacated(nodes[1]))
	drained(nodes[1], false)
	drained(nodes[1], false)
	require.Equal(t, 2, vacated(nodes[1]))
}
