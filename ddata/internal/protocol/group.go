// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
)

// A group connects its parts: what comes in ([group.received]), which register is known
// ([group.adopt]), which replicas there are ([group.membersChanged]), what is repeated
// ([group.tick]); and carries out what its parts return.

// group is one group of keys on this node. Invariants, between steps:
//
//	G1  the generation of reg never falls within a lineage; the lineage's turn never falls
//	G2  every message that is sent is at the present generation, and says so
//	G3  of a durable group, nothing is sent that depends on what is not written yet
//	G4  a replica in no set of reg holds nothing
//	G5  no message is written and no operation ends while a register is taken over, but for what
//	    [group.adopt] does last
type group struct {
	known
	sender

	rerouted bool // What the last route said is out of date: the step ends with a new one.

	proposer    proposer      // What the leader wants to change.
	transfer    transfer      // How this replica catches up.
	passes      passes        // Comparisons of tables.
	propagation propagation   // Deltas.
	ops         ops           // Operations.
	remote      remoteUpdates // Operations through other nodes.
	explainer   explainer     // Questions.
	lags        lags          // Since when other replicas lag.
	majorities  majorities    // Whether there are majorities.
}

func newGroup(m *env, index uint8, cfg Group) *group {
	g := &group{known: known{
		m: m, index: index, cfg: cfg, table: cfg.Table, self: cfg.Replica, caught: cfg.Meta.Caught, storeCheck: newStoreCheck(cfg),
		knows: map[ReplicaID]bool{}, peers: map[ReplicaID]*peer{}, nodes: map[gossip.NodeID]*peer{}, none: map[gossip.NodeID]bool{}, gone: map[ReplicaID]gossip.NodeID{},
	}}
	k := &g.known
	g.sender = sender{known: k, disk: newDisk(m, index, cfg), sweep: sweep{known: k, disk: &g.disk}, change: change{known: k, disk: &g.disk}}
	g.lags, g.majorities = newLags(m, cfg.Table), majorities{known: k, out: &g.sender, passes: &g.passes}
	g.proposer = proposer{known: k, out: &g.sender, passes: &g.passes, majorities: &g.majorities}
	g.passes, g.propagation = newPasses(k, &g.lags), newPropagation(k, &g.lags)
	g.transfer = transfer{known: k, passes: &g.passes, taken: map[ReplicaID]bool{}, whole: map[ReplicaID]bool{}}
	g.remote = newRemote(k, &g.sender, &g.majorities)
	g.ops = ops{known: k, out: &g.sender, lags: &g.lags, propagation: &g.propagation, remote: &g.remote, majorities: &g.majorities, open: map[OpID]*op{}}
	g.explainer = explainer{known: k, out: &g.sender, lags: &g.lags, queries: map[OpID]*keyQuery{}}
	g.change.promised, g.change.accepted, g.change.value = cfg.Meta.Promised, cfg.Meta.Accepted, cfg.Meta.Value
	g.sweep.restore(cfg.Meta.Confirmed)
	if r := cfg.Meta.Register; r != nil {
		g.take(r)
		g.transfer.countOwn()
	}
	return g
}

// start begins the group with what was in the store, and publishes the first route.
func (g *group) start() {
	// Before anything is sent, the store has to say that more may be acknowledged than is in it, and an unclean start
	// is counted by a number of its own.
	if g.storeCheck.unclean {
		g.m.counts.Unclean++
		g.storeCheck.restarts++
	}
	if g.storeCheck.unclean || g.cfg.WriteBehind.Interval > 0 {
		g.disk.metaChanged()
	}
	g.route()
}

// adopt replaces the known register by another one, and has every part go on by that. With fresh, this replica has
// created it.
func (g *group) adopt(r *Register, fresh bool) {
	g.flushDeltas()
	before := g.reg
	known := uint64(0)
	if before != nil && before.Lineage.Turn == r.Lineage.Turn {
		known = before.Gen
	}
	other := before != nil && before.Lineage != r.Lineage
	if r.goesOnFrom(before) {
		known, other = before.Gen, false
	}
	g.take(r)
	g.storeCheck.prune(func(id ReplicaID) bool { return r.In(id) || g.peers[id] != nil })
	if other {
		g.storeCheck.forget()
		g.rerouted = true
	}
	switch {
	case fresh:
		g.caught = true
	case !g.holds() || other:
		g.drop(other)
	case r.Swept > known && g.sweep.marked(r):
		g.ops.sweeping(r)
		g.table.Sweep(r.Swept-1, r.Retired)
	case r.Swept > known && before != nil:
		// This replica cannot tell which tombstones that sweep has dropped, and could bring their keys back: it begins
		// again with nothing.
		g.drop(false)
	}
	if !r.stays(fresh || r.Gen == known+1) {
		g.caught = false
	}
	g.dropBuckets(known)
	g.lags.adopted(r)
	g.disk.metaChanged()
	g.caughtUp(g.transfer.begin())
	g.change.reset()
	g.proposer.adopted()
	g.majorities.adopted()
	g.sweep.adopted()
	g.ops.adopted(r.Gen == known+1 && !other)
	if g.storeCheck.forgetCopies(); g.storeCheck.unclean && !g.holds() {
		// A replica in no set holds nothing, and has lost nothing. This comes after ops.adopted: operations go on with
		// it.
		g.becomeSure()
	}
	g.majorities.wentOn(before)
	g.route()
	g.greet()
}

// propose begins a ballot for a proposal; nil: none.
func (g *group) propose(p *proposal) {
	if p == nil {
		return
	}
	g.post(g.change.propose(p)...)
	if own, votes := g.change.own(); votes {
		g.promised(g.self, own)
	}
}

// catchUp asks for what this replica lacks, if it has to catch up.
func (g *group) catchUp() {
	if !g.transfer.needs() {
		return
	}
	g.caughtUp(g.transfer.enough())
	g.post(g.transfer.ask()...)
}

// caughtUp notes that this replica has caught up, if it has, and tells the others.
func (g *group) caughtUp(has bool) {
	if !has {
		return
	}
	g.caught = true
	g.disk.metaChanged()
	g.greet()
	g.ops.transferEnded()
}

// drop drops every entry that this replica holds. With aside, the store keeps a copy of them.
func (g *group) drop(aside bool) {
	g.caught = false
	n := g.table.Len()
	if n == 0 {
		return
	}
	g.m.counts.Wiped++
	g.table.Wipe()
	g.m.out.Add(DroppedAll{Group: g.index, N: n})
	g.disk.wipe(aside)
}

// noteSealed notes that the end of the change is sealed: a peer says so, or a winning part of the old homes of each
// bucket is known to know of it.
func (g *group) noteSealed(said bool) {
	if g.reg != nil && !g.sealed && (said || g.ends()) {
		g.sealed, g.rerouted = true, true
		g.ops.recount()
	}
}

// route publishes which replicas hold what, for those who read and write without the machine.
func (g *group) route() {
	g.m.out.Add(Routed{Group: g.index, Route: g.routeNow()})
}

// membersChanged forgets peers that are no members any more, and adds members that may hold the group.
func (g *group) membersChanged() {
	state := g.m.state
	g.storeCheck.forgetClaims(state)
	for node, p := range g.nodes { //quorate:unordered each peer by itself
		if state.Member(node) != nil {
			continue
		}
		delete(g.nodes, node)
		if g.peers[p.id] == p {
			delete(g.peers, p.id)
			g.gone[p.id] = node
		}
	}
	for _, p := range g.nodes { //quorate:unordered each peer by itself
		if g.peers[p.id] == nil {
			p.id = 0 // The replica was taken for that of another node, which is gone: this one is asked again.
		}
	}
	for _, t := range state.Tombstones() {
		if !g.cfg.Durable { // The id of a replica in memory is the uid of its node.
			g.gone[ReplicaID(t.Node.UID)] = t.Node
		}
	}
	for id := range g.gone { //quorate:unordered each by itself
		if g.reg == nil || !g.reg.In(id) || g.peers[id] != nil {
			delete(g.gone, id)
		}
	}
	g.rerouted = true
	for _, of := range g.m.replicas(g.cfg.Role) {
		if of.Node != g.m.cfg.Self && g.nodes[of.Node] == nil {
			g.nodes[of.Node] = &peer{node: of.Node}
		}
	}
}

// tick has every part repeat what was not answered, and begin what is due.
func (g *group) tick() {
	g.table.SetTick(g.m.seconds())
	for _, x := range g.explainer.sorted() {
		if g.explainer.late(x) {
			g.explain(x)
		}
	}
	if g.m.state == nil {
		return
	}
	g.hello(g.passes.taken)
	g.majorities.tick()
	if !g.member() {
		g.ops.tick()
		g.remote.tick()
		return
	}
	if g.tickStore(); !g.apart() {
		g.propose(g.proposer.tick())
		g.catchUp()
		g.post(g.passes.tick()...)
	}
	g.restore()
	g.propagation.tick()
	if !g.apart() {
		g.post(g.sweep.tick()...)
	}
	g.ops.tick()
	g.remote.tick()
}

// settle ends a step: what has changed goes to subscribers and to the store. If it is asked to, it reports whether
// anything waits that a tick brings further.
func (g *group) settle(asked bool) (busy bool) {
	if g.rerouted {
		g.rerouted = false
		g.route()
	}
	g.flush()
	return asked && g.busy()
}

// flushDeltas sends the deltas that wait, and forgets the batches that are not answered. It is called before another
// register is adopted: after that, messages name its generation, in which those deltas were not made.
func (g *group) flushDeltas() {
	if g.reg != nil {
		g.ops.carry(g.propagation.flush(true))
	}
	g.propagation.forget()
}

// OriginOf returns the origin under which a node changes values: that which package table makes of its uid, and never
// 0.
func OriginOf(uid gossip.UID) crdt.Origin {
	if o := table.Owner(crdt.Origin(uid)); o != 0 {
		return o
	}
	return 1
}
