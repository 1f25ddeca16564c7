// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// A group connects its parts: what comes in ([group.received]), which register is known
// ([group.adopt]), which replicas there are ([group.membersChanged]), what is repeated
// ([group.tick]), and how messages go out ([group.send]).

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

	rerouted bool   // A replica is at another node than the last route says.
	refused  string // Why this replica cannot take part, for people: empty mostly.

	change     change     // Deciding the next generation.
	lead       lead       // What the leader wants to change.
	behind     behind     // Catching up.
	passes     passes     // Comparisons of tables.
	spread     spread     // Deltas.
	ops        ops        // Operations.
	remote     remote     // Operations through other nodes.
	sweep      sweep      // Sweeps.
	explains   explains   // Questions.
	lags       lags       // Since when others lag.
	disk       disk       // The store.
	majorities majorities // Whether there are majorities.
}

func newGroup(m *env, index uint8, cfg Group) *group {
	g := &group{known: known{
		m: m, index: index, cfg: cfg, table: cfg.Table, self: cfg.Replica, caught: cfg.Meta.Caught, integrity: newIntegrity(cfg),
		knows: map[ReplicaID]bool{}, peers: map[ReplicaID]*peer{}, nodes: map[gossip.NodeID]*peer{}, none: map[gossip.NodeID]bool{}, gone: map[ReplicaID]gossip.NodeID{},
	}}
	g.change, g.lead, g.behind, g.passes = change{known: &g.known, disk: &g.disk}, lead{group: g}, behind{known: &g.known, passes: &g.passes, got: map[ReplicaID]bool{}, whole: map[ReplicaID]bool{}}, newPasses(&g.known, &g.lags)
	g.spread, g.ops, g.sweep, g.disk = newSpread(&g.known, &g.lags), newOps(g), sweep{known: &g.known, disk: &g.disk}, newDisk(m, index, cfg)
	g.remote, g.explains, g.lags, g.majorities = newRemote(g), newExplains(g), newLags(m, cfg.Table), majorities{group: g}
	g.change.promised, g.change.accepted, g.change.value = cfg.Meta.Promised, cfg.Meta.Accepted, cfg.Meta.Value
	g.sweep.restore(cfg.Meta.Confirmed)
	if r := cfg.Meta.Register; r != nil {
		g.take(r)
		g.behind.own()
	}
	return g
}

// start says which replicas hold what.
func (g *group) start() {
	g.startStore()
	g.route()
}

// adopt takes a register over that replaces the known one. With fresh, this replica has
// created it.
func (g *group) adopt(r *Register, fresh bool) {
	g.rest()
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
	g.integrity.prune(func(id ReplicaID) bool { return r.In(id) || g.peers[id] != nil })
	if other {
		g.integrity.forget()
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
		// What this replica holds was read before a sweep of which it does not know what
		// fell: it holds nothing then.
		g.drop(false)
	}
	g.caught = r.stays(g.caught, fresh || r.Gen == known+1)
	g.dropReset(known)
	g.dropForeign()
	g.lags.adopted(r)
	g.disk.metaChanged()
	g.caughtUp(g.behind.begin())
	g.change.reset()
	g.lead.adopted()
	g.majorities.adopted()
	g.sweep.adopted()
	g.ops.adopted(r.Gen == known+1 && !other)
	if g.integrity.forgetCopies(); g.integrity.unclean && !g.holds() {
		g.sure() // Who is in no set holds nothing, and has lost nothing. After the operations, which it looks at.
	}
	g.majorities.wentOn(before)
	g.route()
	g.greet()
}

// propose begins to make a value that of the next generation.
func (g *group) propose(v Register, acceptors Set, unanimous bool) {
	g.carry(g.change.propose(v, acceptors, unanimous), nil)
	if own, votes := g.change.own(); votes {
		g.promised(g.self, own)
	}
}

// promised counts a promise.
func (g *group) promised(by ReplicaID, b Promise) {
	enough, out := g.change.promise(by, b)
	g.carry(out, nil)
	if !enough {
		return
	}
	if own, votes := g.change.ownAccepted(); votes {
		g.accepted(g.self, own)
	}
}

// accepted counts an acceptance, and takes over what is decided.
func (g *group) accepted(by ReplicaID, b Accepted) {
	if v := g.change.acceptance(by, b); v != nil {
		g.m.out.Decide(ComponentName, g.cfg.Name, fmt.Sprintf("generation %d %v", v.Gen, v.Phase), describe(v))
		g.adopt(v, g.reg == nil)
	}
}

// attempting reports whether an attempt to change the register is under way and not standing still.
func (g *group) attempting() bool {
	busy, again := g.change.busy()
	g.carry(again, nil)
	return busy
}

// catchUp takes in what this replica lacks, if it has to.
func (g *group) catchUp() {
	if !g.behind.needs() {
		return
	}
	g.caughtUp(g.behind.enough())
	g.carry(g.behind.ask(), nil)
}

// caughtUp notes that this replica has caught up, if it has, and tells the others.
func (g *group) caughtUp(has bool) {
	if !has {
		return
	}
	g.caught = true
	g.disk.metaChanged()
	g.greet()
	g.ops.caughtUp()
}

// compare handles the message of a pass, and what follows from it.
func (g *group) compare(p *peer, e Envelope) {
	x := g.passes.received(p, e)
	g.give(p, x.back)
	g.carry(x.out, nil)
	if x.ended == nil {
		return
	}
	if x.ended.catchUp {
		g.caughtUp(g.behind.took(x.ended))
	}
	g.integrity.ended(x.ended)
	g.restored()
	g.majorities.ended(x.ended)
}

// take makes a register the known one. It sends and ends nothing: what this replica holds, and
// which answers count, is not settled for that register before [group.adopt] is through.
func (g *group) take(r *Register) {
	g.reg = r
	g.views = newViews(r, placement{g.cfg.Copies}, table.Buckets)
	clear(g.knows)
	g.knows[g.self] = true
	g.sealed = g.ends()
}

// drop forgets everything that the replica holds. With aside, the store keeps a copy.
func (g *group) drop(aside bool) {
	g.caught = false
	n := g.table.Len()
	if n == 0 {
		return
	}
	g.m.counts.Wiped++
	g.table.Wipe()
	g.m.out.Add(Wiped{Group: g.index, N: n})
	g.disk.wipe(aside)
}

// dropForeign drops the buckets of which this replica is no home any more.
func (g *group) dropForeign() {
	if g.cfg.Copies == 0 || !g.holds() {
		return
	}
	for bucket := range table.Buckets {
		if !g.views.bucket(bucket).has(g.self) {
			g.table.Drop(bucket)
		}
	}
}

// seal notes that the end of the change is sealed.
func (g *group) seal() {
	if !g.sealed {
		g.sealed, g.rerouted = true, true
		g.ops.recount()
	}
}

// trySeal seals the end as soon as a winning part of the old homes of each bucket is
// known to know of it.
func (g *group) trySeal() {
	if g.reg != nil && !g.sealed && g.ends() {
		g.seal()
	}
}

// route tells those that work without the machine which replicas hold what.
func (g *group) route() {
	g.m.out.Add(Routed{Group: g.index, Route: g.routeNow()})
}

// greet tells every replica of the sets, and who leads, of a new generation.
func (g *group) greet() {
	for _, p := range g.sorted() {
		if g.reg.In(p.id) || p.node == g.leader() {
			g.send(p, Hello{})
		}
	}
}

// membersChanged forgets peers that are no members any more.
func (g *group) membersChanged() {
	state := g.m.state
	g.integrity.forgetClaims(state)
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
			p.id = 0 // Its replica was believed to be another node's, which is gone: it is asked again.
		}
	}
	for _, t := range state.Tombstones() {
		if !g.cfg.Durable { // In memory a replica is its node.
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

// tick repeats what was not answered.
func (g *group) tick() {
	g.table.SetTick(g.seconds())
	g.explains.tick()
	if g.m.state == nil {
		return
	}
	g.hello()
	g.majorities.tick()
	if !g.member() {
		g.ops.tick()
		g.remote.tick()
		return
	}
	if g.tickStore(); !g.apart() {
		g.lead.tick()
		g.catchUp()
		g.carry(g.passes.tick(), nil)
	}
	g.restore()
	g.spread.tick()
	if !g.apart() {
		g.carry(g.sweep.tick(), nil)
	}
	g.ops.tick()
	g.remote.tick()
}

// hello asks those members of which no replica is known, and tells the leader how far
// this replica is while something changes, and of which name it is while it is in no set.
func (g *group) hello() {
	for _, of := range g.m.replicas(g.cfg.Role) {
		p := g.nodes[of.Node]
		switch {
		case p == nil:
		case p.id == 0:
			g.send(p, Hello{Ask: true})
		case of.Node == g.leader() && (g.reg == nil || g.reg.Phase == PhaseJoint || !g.sealed || g.member() && !g.reg.In(g.self)):
			g.send(p, Hello{Taken: g.passes.taken})
		case g.reg != nil && g.misses(p) && (g.reg.In(p.id) || g.leads()):
			g.send(p, Hello{Ask: true})
		}
	}
}

// settle ends a step: what has changed goes to subscribers and to the store. Asked for it, it reports whether anything
// waits that a tick brings further.
func (g *group) settle(asked bool) (busy bool) {
	if g.rerouted {
		g.rerouted = false
		g.route()
	}
	if changed := g.changed(); g.disk.used && g.disk.due(g.integrity.count, changed) {
		g.disk.begin(g.meta(), g.integrity.count)
		g.integrity.news = false
	}
	return asked && g.busy()
}

// changedAtOnce is how many keys are taken from the table at a time.
const changedAtOnce = 1 << 16

// changed takes all keys that have changed from the table, and tells the subscribers.
func (g *group) changed() []string {
	var keys []string
	for more := true; more; {
		some := g.table.Changed(changedAtOnce)
		keys, more = append(keys, some...), len(some) == changedAtOnce
	}
	if len(keys) > 0 {
		if g.sweep.changed(keys) {
			g.disk.metaChanged()
		}
		g.m.out.Add(Notify{Group: g.index, Keys: keys})
	}
	return keys
}

// meta is what is to be remembered beside the entries, but for the number of the batch.
func (g *group) meta() Meta {
	m := Meta{
		Register: g.reg, Caught: g.caught, Promised: g.change.promised, Accepted: g.change.accepted, Value: g.change.value,
		Confirmed: g.sweep.marks(), Shown: g.integrity.remembered(), Behind: g.behindStore(), Restarts: g.integrity.restarts,
	}
	if g.integrity.count == older {
		m.Older = g.self
	}
	return m
}

// final is the last batch, with everything in it that may be missing.
func (g *group) final() Persist {
	m := g.meta()
	m.Behind = g.integrity.unclean
	return g.disk.final(m, g.integrity.count)
}

// send sends a message to a peer, with the register unless the peer is known to know it.
func (g *group) send(p *peer, body any) {
	if g.reg == nil && !g.counted(p.node) {
		return // Who is not asked before a register is created must not be told that there is none.
	}
	e := Envelope{
		Group: g.index, From: g.envelopeID(), Suspended: !g.m.mayHost(), Restarts: g.integrity.restarts,
		Agrees: g.cfg.Durable && p.compared && p.lost == 0, Body: body,
	}
	if g.reg != nil {
		e.Lineage, e.Gen, e.Sealed, e.Caught = g.reg.Lineage, g.reg.Gen, g.sealed, g.caught && !g.apart()
		if g.misses(p) {
			e.Register, p.told.gen, p.told.at = g.reg, g.reg.Gen, g.m.now.Mono
		}
	}
	if !g.disk.used {
		g.m.out.Add(machine.Send{To: p.node, Lane: laneOf(body), Message: e})
		return
	}
	e.Apart, e.Older, e.Unsure = g.apart(), g.integrity.count == older, g.integrity.unclean
	p.shown = g.disk.send(p.node, e, g.integrity.count, g.changed())
}

// give sends entries to a replica, each key once, in messages of a bounded size.
func (g *group) give(p *peer, entries []table.Entry) {
	given := make(map[string]bool, len(entries))
	entries = slices.DeleteFunc(entries, func(e table.Entry) bool {
		again := given[e.Key]
		given[e.Key] = true
		return again
	})
	for part := range chunks(entries, g.m.cfg.Bounds.MessageBytes) {
		g.send(p, Put{Stamp: g.gen(), Entries: part})
	}
}

// rest sends what waits before another register is adopted, since afterwards it would have to
// say another generation, and forgets the batches that are on their way.
func (g *group) rest() {
	if g.reg != nil {
		g.carry(g.spread.flush(true))
	}
	g.spread.forget()
}

// carry sends messages, and tells operations what has become of their changes.
func (g *group) carry(out []letter, notices []notice) {
	for _, l := range out {
		g.send(l.to, l.body)
	}
	for _, n := range notices {
		g.ops.learn(n)
	}
}

// done ends an operation.
func (g *group) done(d Done) {
	if !g.disk.used {
		g.m.out.Add(d)
		return
	}
	g.disk.answer(d, g.integrity.count, g.changed())
}

// laneOf returns the lane of a message: what may be large goes where nothing small waits.
func laneOf(body any) machine.Lane {
	switch body.(type) {
	case Compare, Groups, AskBuckets, BucketHashes, Pull, Pulled:
		return machine.LaneBulk
	default:
		return machine.LaneMessage
	}
}

// OriginOf returns the origin under which a node changes values.
func OriginOf(uid gossip.UID) crdt.Origin {
	if o := table.Owner(crdt.Origin(uid)); o != 0 {
		return o
	}
	return 1
}
