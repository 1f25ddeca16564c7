// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	world "github.com/quorate/quorate/simulation"
)

// A kind of which only the first shards are in use, and how many changes: the fault rescale asks for changes, the
// ledger's revisions check each start of an instance, inUse says how many there should be in the end.

// leastInUse is how many shards are always in use: clients send to those.
const leastInUse = 2

// rescale returns the fault that asks a random node for a random number of shards in use.
func rescale(c *Cluster) func(w *world.World, r *rand.Rand) {
	return func(w *world.World, r *rand.Rand) { rescaleAt(c, w, r) }
}

func rescaleAt(c *Cluster, w *world.World, r *rand.Rand) {
	if nodes := w.Nodes(); len(nodes) > 0 {
		asked := nodes[r.IntN(len(nodes))]
		c.orders++
		count := leastInUse + uint32(r.IntN(int(c.opt.Shards)-leastInUse+1))
		order := control.SetScale{Kind: KindName, ID: c.orders, Base: Control(asked).Inspect(KindName).Scale.Revision, Count: count}
		w.Log("rescale to %d upon %d by %v", order.Count, order.Base, asked.ID())
		w.Input(asked.ID().Address, protocol.Service, order)
	}
}

// used returns how many shards of a layout should have a home.
func used(c *Cluster, of protocol.Layout) int {
	if c.opt.InUse == 0 {
		return int(of.Shards)
	}
	for _, n := range c.World.Nodes() {
		if i := Control(n).Inspect(KindName); i.Coordinating {
			return int(i.Scale.Count)
		}
	}
	return 0
}

// agreed is the condition that reports nodes that know different numbers, or a change that has not come to its end.
func agreed(c *Cluster) func() error { return func() error { return agree(c) } }

func agree(c *Cluster) error {
	for _, n := range c.World.Nodes() {
		i, first := Control(n).Inspect(KindName), Control(c.World.Nodes()[0]).Inspect(KindName)
		if i.Rescaling || i.Scale != first.Scale {
			return fmt.Errorf("%s knows %+v, another one %+v, changing: %t", n.ID(), i.Scale, first.Scale, i.Rescaling)
		}
	}
	return nil
}

// revisions checks under which revisions instances run.
type revisions struct {
	known  map[gossip.NodeID]control.Scale            // What the nodes know.
	under  map[string]map[gossip.NodeID]control.Scale // Under which the instances were started.
	counts map[uint64]uint32                          // How many shards are in use under a revision.
	born   int64                                      // The birth of the cluster to which counts belongs.
}

// scaled notes what a node has learnt.
func (l *Ledger) scaled(node gossip.NodeID, s control.Scale) { l.revisions.known[node] = s }

// revised checks an instance that starts: its shard is in use, no node that may host knows of a later revision, no
// instance runs under another one, and one revision is one number.
func (l *Ledger) revised(node gossip.NodeID, e *cell.Entity, shards uint32) {
	now, scaled := l.revisions.known[node]
	if !scaled || !l.mayHost(node) {
		return
	}
	if s := protocol.ShardOf(e.ID(), shards); uint32(s) >= now.Count {
		l.violate("S3: %s starts at %s in shard %d, while %d are in use", e.ID(), node, s, now.Count)
	}
	for other, known := range l.revisions.known { //quorate:unordered each by itself
		if known.Revision > now.Revision && l.mayHost(other) {
			l.violate("S1: %s starts at %s under revision %d, while %s knows of %d", e.ID(), node, now.Revision, other, known.Revision)
		}
	}
	for id, all := range l.revisions.under { //quorate:unordered each by itself
		for other, started := range all { //quorate:unordered each by itself
			if _, lives := l.instances[id][other]; lives && started != now && l.mayHost(other) {
				l.violate("S1: %s starts at %s under %+v, while %s runs at %s under %+v", e.ID(), node, now, id, other, started)
			}
		}
	}
	// (docs/singletons.md, "the number of the program counts again: each node keeps it, in memory")
	if born := e.Epoch().Born; born != l.revisions.born {
		l.revisions.born, l.revisions.counts = born, make(map[uint64]uint32)
	}
	if count, ran := l.revisions.counts[now.Revision]; ran && count != now.Count {
		l.violate("S3: revision %d is %d shards at %s, and was %d", now.Revision, now.Count, node, count)
	}
	if l.revisions.counts[now.Revision] == 0 {
		l.counts.Revisions++
	}
	l.revisions.counts[now.Revision] = now.Count
	all := l.revisions.under[e.ID()]
	if all == nil {
		all = make(map[gossip.NodeID]control.Scale)
		l.revisions.under[e.ID()] = all
	}
	all[node] = now
}
