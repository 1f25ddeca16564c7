// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Leases of shards: a store that is down and comes back, a lease that somebody else gets, nodes that
// leave and die while they wait or hold.

// leased is the kind of six shards, each with a lease.
func leased(f *fleet) (nodes []*peer) {
	f.t.Helper()
	kind := six()
	kind.Lease = true
	for i := range 3 {
		nodes = append(nodes, f.start(i+1, kind))
	}
	f.run(5 * time.Second)
	return nodes
}

// hosted returns how many shards are hosted by nodes.
func hostedBy(nodes ...*peer) (n int) {
	for _, p := range nodes {
		n += len(p.hosts())
	}
	return n
}

// Nothing is hosted without its lease; when the store answers again all is.
func TestAShardWaitsForItsLease(t *testing.T) {
	f := newFleet(t)
	f.storeDown = true
	nodes := leased(f)
	require.Zero(t, hostedBy(nodes...))
	require.Empty(t, f.leases)
	f.storeDown = false
	f.run(time.Second)
	f.settled(6, nodes...)
	require.Len(t, f.leases, 6)
}

// A lease that is lost stops its shard, though nobody asked for that; the shard waits, at whatever home, until the
// lease is free. The streams go on. The word that it has stopped may be lost.
func TestALeaseIsLost(t *testing.T) {
	for _, lossy := range []bool{false, true} {
		f := newFleet(t)
		nodes := leased(f)
		f.settled(6, nodes...)
		s := nodes[2].hosts()[0]
		base := nodes[0].Inspect("k").Homes[s].Base
		if lossy {
			f.dropNext(2)
		}
		f.loses(s, member(99))
		f.run(100 * time.Millisecond)
		require.Equal(t, 5, hostedBy(nodes...))
		f.run(10 * time.Second)
		require.Equal(t, 5, hostedBy(nodes...))
		delete(f.leases, s)
		f.run(time.Second)
		f.settled(6, nodes...)
		require.Equal(t, base, nodes[0].Inspect("k").Homes[s].Base)
	}
}

// A node that leaves while shards wait for their leases hands them back as they came, and nodes give back what they
// held.
func TestNodesLeaveWithAndWithoutLeases(t *testing.T) {
	f := newFleet(t)
	f.storeDown = true
	nodes := leased(f)
	f.set(gossip.Leaving, nodes[2])
	f.run(3 * time.Second)
	require.True(t, nodes[2].left)
	require.Empty(t, nodes[2].asking)
	f.storeDown = false
	f.run(3 * time.Second)
	require.Equal(t, 6, hostedBy(nodes[:2]...))
	f.remove(nodes[2])
	f.fence(nodes[2])
	f.set(gossip.Leaving, nodes[1])
	f.run(3 * time.Second)
	require.True(t, nodes[1].left)
	require.Empty(t, nodes[1].asking)
	f.settled(6, nodes[0])
	f.remove(nodes[1])
	f.fence(nodes[1])
	f.set(gossip.Leaving, nodes[0])
	f.run(3 * time.Second)
	require.True(t, nodes[0].left)
	nodes[0].step(component.Stopping{})
	require.Empty(t, f.leases)
}

// A lease of a node that died keeps others out until its time is over.
func TestTheLeaseOfADeadNode(t *testing.T) {
	f := newFleet(t)
	nodes := leased(f)
	had := nodes[2].hosts()
	f.remove(nodes[2])
	f.fence(nodes[2])
	f.run(5 * time.Second)
	require.Equal(t, 6-len(had), hostedBy(nodes[:2]...))
	for _, s := range had {
		require.Equal(t, nodes[2].id, f.leases[s])
		delete(f.leases, s)
	}
	f.run(time.Second)
	f.settled(6, nodes[:2]...)
}

// A lease that was lost while the stop of its shard was under way, and one that comes too late.
func TestLeasesThatComeAndGoLate(t *testing.T) {
	f := newFleet(t)
	nodes := leased(f)
	f.stops = func(protocol.ShardID) time.Duration { return time.Second }
	f.set(gossip.Leaving, nodes[2])
	f.run(100 * time.Millisecond)
	for _, s := range nodes[2].hosts() {
		f.loses(s, gossip.NodeID{})
		delete(f.leases, s)
	}
	f.run(5 * time.Second)
	require.True(t, nodes[2].left)
	f.settled(6, nodes[:2]...)
}
