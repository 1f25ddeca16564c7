// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A lease for each shard: with KindConfig.Lease the entities of a shard start only when this node holds the lease of
// the shard. The coordinator does not know of it: for it the shard is hosted, and is moved like any other.
//
//	Host ──> AskLease ──> (waiting) ──LeaseHeld──> StartHosting ──> (held)
//	              Stop, while it waits: handed back as it came        │ LeaseLost
//	              ShardsStopped <── ShardStopped <── its entities are given up
//	GiveLease when the shard has stopped, or was passed over
//
// A shard whose lease was lost is handed back to the coordinator, which gives it a home under a new epoch: this node
// again, or another, which asks for the lease. So what runs under a lease began under it.

// AskLease is an effect: ask for the lease of a shard until it is held, and hold it until [GiveLease]. Each is answered
// by [LeaseHeld], and that by [LeaseLost] if the lease is lost; a lease that was lost is not asked for again by itself.
type AskLease struct {
	Kind  string
	Shard protocol.ShardID
	Epoch protocol.Epoch
}

// GiveLease is an effect: give the lease of a shard back, or ask for it no longer.
type GiveLease struct {
	Kind  string
	Shard protocol.ShardID
	Epoch protocol.Epoch
}

// LeaseHeld is the input that the lease of a shard is held.
type LeaseHeld struct {
	Kind  string
	Shard protocol.ShardID
	Epoch protocol.Epoch
}

// LeaseLost is the input that the lease of a shard, which was held, is not any more.
type LeaseLost struct {
	Kind  string
	Shard protocol.ShardID
	Epoch protocol.Epoch
}

// gatePhase says how far a lease has come.
type gatePhase uint8

const (
	gateWaiting gatePhase = iota // The lease is asked for, and the cell hosts nothing.
	gateHeld
	gateLost // The entities are given up, and the shard is handed back.
)

// gate is the lease of a shard that this node hosts.
type gate struct {
	phase gatePhase
	order protocol.StartHosting // What the cell is told when the lease is held.
}

// gates are the leases of the shards of a region. Invariants, between steps:
//
//	G1  a cell of a kind with leases was told to host only while the gate of its shard is held;
//	G2  a gate has the epoch of the hosted entry of its shard, and one that is waiting or held belongs to one that is not
//	    halted;
//	G3  every AskLease is followed by one GiveLease, unless the node ends: then whoever holds the leases gives them
//	    back when the entities have returned.
type gates struct {
	host *host
	all  map[protocol.ShardID]*gate
}

// begin begins to host a shard, when the lease is held if there is to be one.
func (g *gates) begin(s protocol.ShardID, order protocol.StartHosting) {
	if !g.host.cfg.Lease {
		g.host.toShard(s, order)
		return
	}
	g.release(s)
	if g.all == nil {
		g.all = make(map[protocol.ShardID]*gate)
	}
	g.all[s] = &gate{order: order}
	g.host.kind.control.out.Add(AskLease{Kind: g.host.cfg.Name, Shard: s, Epoch: order.Epoch})
}

// release gives the lease of a shard back, if there is one.
func (g *gates) release(s protocol.ShardID) {
	if of := g.all[s]; of != nil {
		delete(g.all, s)
		g.host.kind.control.out.Add(GiveLease{Kind: g.host.cfg.Name, Shard: s, Epoch: of.order.Epoch})
	}
}

// waits reports whether a shard waits for its lease.
func (g *gates) waits(s protocol.ShardID) bool {
	return g.all[s] != nil && g.all[s].phase == gateWaiting
}

// held has the cell host, when its lease is held.
func (g *gates) held(in LeaseHeld) {
	of := g.all[in.Shard]
	if of == nil || of.order.Epoch != in.Epoch || of.phase != gateWaiting {
		return
	}
	of.phase = gateHeld
	if g.host.kind.control.suspended {
		g.host.toShard(in.Shard, protocol.SuspendHosting{})
	}
	g.host.toShard(in.Shard, of.order)
	of.order.Positions, of.order.Snapshots = nil, nil
}

// lost gives the entities of a shard up: somebody else may hold the lease from now on.
func (g *gates) lost(in LeaseLost) {
	of, entry := g.all[in.Shard], g.host.hosted[in.Shard]
	if of == nil || of.order.Epoch != in.Epoch || of.phase != gateHeld {
		return
	}
	of.phase = gateLost
	g.host.kind.control.out.Decide("lease", g.host.cfg.Name, "lost", "the shard is handed back, and its entities are given up")
	if entry == nil || entry.epoch != in.Epoch || entry.state == Halted {
		return
	}
	if entry.state == Serving {
		g.host.toShard(in.Shard, protocol.StopHosting{Epoch: in.Epoch})
	}
	entry.state = Stopping
	g.host.toShard(in.Shard, protocol.ReleaseHosting{Epoch: in.Epoch})
}

// withdraw stops a shard that waits for its lease, as it came: its cell has never hosted it.
func (g *gates) withdraw(s protocol.ShardID) {
	order, entry := g.all[s].order, g.host.hosted[s]
	g.host.halts(entry, order.Base, order.Positions)
	g.host.snapshots.put(s, order.Snapshots, g.host.kind.snapshotsUntil())
	g.release(s)
}

// halted takes that the cell of a shard has stopped. A lease that was lost stays noted until another home is known.
func (g *gates) halted(s protocol.ShardID) {
	if of := g.all[s]; of != nil && of.phase != gateLost {
		g.release(s)
	}
}

// clear gives the leases back that were lost, once the shards have other homes.
func (g *gates) clear() {
	var lost []protocol.ShardID
	for s, of := range g.all { //quorate:unordered sorted below
		if entry := g.host.hosted[s]; of.phase == gateLost && (entry == nil || entry.epoch != of.order.Epoch) {
			lost = append(lost, s)
		}
	}
	slices.Sort(lost)
	for _, s := range lost {
		g.release(s)
	}
}
