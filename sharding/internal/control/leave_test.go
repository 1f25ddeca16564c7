// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A node that leaves does not report that it is done before other nodes have taken over its
// shards: the positions of the streams that it sent may be lost, and are asked for again.
// covers F37, I20.
func TestLeaverWaitsUntilItsShardsAreTakenOver(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	before := nodes[0].Inspect("k").Homes
	f.drop = func(_, _ gossip.NodeID, m control.Message) bool {
		_, stopped := m.(control.ShardsStopped)
		return stopped
	}
	f.set(gossip.Leaving, nodes[1])
	f.run(400 * time.Millisecond)
	require.Empty(t, nodes[1].hosts())
	require.False(t, nodes[1].left)
	f.drop = nil
	f.run(time.Second)
	require.True(t, nodes[1].left)
	f.settled(6, nodes[0])
	for _, h := range nodes[0].Inspect("k").Homes {
		require.Equal(t, before[h.Shard].Base, h.Base, "the streams go on")
	}
}

// A coordinator that does not know yet that a node leaves may give it shards. The node
// hands each of them back as it came, at every such order, and says that it takes no more.
func TestLeavingRegionHandsOrdersBack(t *testing.T) {
	f := newFleet(t)
	p := f.puppet(1)
	n := f.start(2, six())
	p.say(n, control.Query{Kind: "k", Term: term(1, 1)})
	e := func(n uint64) protocol.Epoch { return protocol.Epoch{Born: 7, Term: term(1, 1), N: n} }
	host := func(s protocol.ShardID, n uint64) control.Host {
		return control.Host{Kind: "k", Term: term(1, 1), Shards: []control.HostShard{
			{
				Shard: s, Epoch: e(n), Base: e(1), Positions: []protocol.Position{{Origin: writer, Seq: 9}},
				Snapshots: []protocol.Snapshot{{Entity: "x", Data: []byte("memory")}},
			},
		}}
	}
	p.say(n, host(0, 2))
	require.Len(t, n.hosts(), 1)
	f.set(gossip.Leaving, n)
	f.run(5 * latency)
	require.True(t, last[control.Register](t, p).Registration.Suspended)
	for range 2 {
		p.say(n, host(3, 4))
		register, _ := find[control.Register](p)
		require.True(t, register.Registration.Suspended)
		require.Equal(t, []control.StoppedShard{control.StoppedShard(host(3, 4).Shards[0])}, last[control.ShardsStopped](t, p).Shards)
	}
	p.say(n, host(0, 2))
	require.Len(t, last[control.Hosting](t, p).Shards, 1, "what it hosts it hosts")
	p.say(n, control.Stop{Kind: "k", Term: term(1, 1), Shards: []control.ShardEpoch{{Shard: 0, Epoch: e(2)}}})
	f.run(20 * time.Millisecond)
	require.EqualValues(t, 1, last[control.ShardsStopped](t, p).Shards[0].Positions[0].Seq)
	p.say(n, host(0, 2))
	require.EqualValues(t, 1, last[control.ShardsStopped](t, p).Shards[0].Positions[0].Seq, "the positions that it stopped with")
	p.say(n, host(0, 5))
	require.Equal(t, e(5), last[control.ShardsStopped](t, p).Shards[0].Epoch, "stopped once, given again, handed back")
	require.Empty(t, n.hosts())
}

// An old order to host a shard does not bring the shard back after it was stopped, also when
// a query came twice. A node that leaves answers such an order with the stop.
// covers F37, I20.
func TestOldOrderDoesNotHostAgain(t *testing.T) {
	for name, leaving := range map[string]bool{"staying": false, "leaving": true} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			p := f.puppet(1)
			n := f.start(2, six())
			p.say(n, control.Query{Kind: "k", Term: term(1, 1)})
			e := protocol.Epoch{Born: 7, Term: term(1, 1), N: 2}
			host := control.Host{Kind: "k", Term: term(1, 1), Shards: []control.HostShard{{Shard: 0, Epoch: e, Base: e}}}
			p.say(n, host)
			p.say(n, control.Stop{Kind: "k", Term: term(1, 1), Shards: []control.ShardEpoch{{Shard: 0, Epoch: e}}})
			f.run(20 * time.Millisecond)
			p.say(n, control.Query{Kind: "k", Term: term(1, 1)}) // The network has doubled the query.
			require.Empty(t, last[control.Report](t, p).Hosted)
			if leaving {
				f.set(gossip.Leaving, n)
				f.run(5 * latency)
			}
			p.heard = nil
			p.say(n, host)
			require.Empty(t, n.hosts())
			if leaving {
				require.Equal(t, e, last[control.ShardsStopped](t, p).Shards[0].Epoch)
			}
			p.heard = slices.DeleteFunc(p.heard, func(m control.Message) bool { _, again := m.(control.Register); return again })
			require.Empty(t, p.heard)
		})
	}
}

// While the whole cluster is being shut down shards stay where they are, and one without a home gets one.
// As soon as a member leaves that was ready for it, nobody takes over anything: all are about to leave.
func TestNothingMovesWhileTheWholeClusterIsShutDown(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	homes := nodes[0].Inspect("k").Homes
	third := f.start(3, six()) // It would get its share soon.
	for _, n := range append(nodes, third) {
		f.set(gossip.Preparing, n)
	}
	drained(nodes[1], true)
	f.run(time.Minute)
	require.Equal(t, homes, nodes[0].Inspect("k").Homes, "for balance and by drain nothing moves")
	require.Equal(t, "the whole cluster is being shut down", told(t, f, nodes[0], homes[0].Shard, third.id))

	for _, n := range append(nodes, third) {
		f.set(gossip.Ready, n)
	}
	f.set(gossip.Leaving, nodes[1])
	f.run(time.Second)
	require.Empty(t, nodes[1].hosts())
	require.True(t, nodes[1].left, "it waits for nobody")
	require.Empty(t, third.hosts())
	require.NotEmpty(t, nodes[0].hosts(), "who has not begun to leave goes on")
	for _, n := range []*peer{nodes[0], third} {
		f.set(gossip.Leaving, n)
	}
	f.run(500 * time.Millisecond)
	require.True(t, nodes[0].left, "the coordinator's node")
	require.True(t, third.left)
}
