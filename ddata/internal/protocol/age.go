// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// A store that was put back to an older state holds less than its replica has promised and
// acknowledged. The replica must not count until that is known, and counts no more then:
//
//	start ──> apart ──(everybody who is there has compared)──> takes part
//	            └──(a replica remembers a later batch)──> older ──> another replica
//
// The batches of a store have numbers. A message says which number the store had when its node
// started, and up to which one the message may depend on it. Each replica remembers, also on
// its own disk, what the others have shown ([age.compare]), and says to each whether that is
// more than its node has found in its store ([Aged], [Envelope.Agrees]).
//
// First which numbers are shown; then what is remembered of others; then what a replica does
// until it takes part ([age.look]), and when it is older ([age.told], [Machine.renew]).

// Shown is what a replica remembers of the store of another one: the greatest number of a
// batch that the node with the uid has shown, and the greatest of those before it.
type Shown struct {
	ID              ReplicaID
	UID             gossip.UID
	Written, Before uint64
}

// Aged says to a replica that its store is older than what the sender remembers of it: that
// the batch with a number was in it.
type Aged struct {
	Of      ReplicaID
	Written uint64
}

// RenewID is the request of a call to [StorePort] to give the store another id, unless it has
// another one already. The result is the id of the store, a [ReplicaID].
type RenewID struct{ Of ReplicaID }

// age is the part of a durable group that knows how old stores are.
type age struct {
	group   *group
	loaded  uint64 // The number of the last batch that was in the store at the start.
	written uint64 // The number of the last batch that was begun.
	kept    uint64 // The number of the last batch that is known to be in the store.
	proven  bool   // Every member that was reachable has compared: this replica takes part.

	// older is the number of a batch that another replica remembers and this store did not hold
	// at the start; 0 while no replica remembers such a batch.
	older   uint64
	witness string // The node that remembers the batch; "" if the store itself says that it is older.

	shown map[ReplicaID]Shown
	news  bool            // shown has changed since it was written to the store last.
	noted machine.Instant // When shown was written to the store last.
}

// noteEvery is how often a replica writes down the numbers that others have shown, and shows
// its own number to the replicas that have not heard it.
const noteEvery = time.Second

func newAge(g *group) age {
	last := g.cfg.Meta.Written
	a := age{group: g, loaded: last, written: last, kept: last, shown: map[ReplicaID]Shown{}}
	for _, s := range g.cfg.Meta.Shown {
		a.shown[s.ID] = s
	}
	if g.self != 0 && g.cfg.Meta.Older == g.self {
		a.older = a.loaded + 1
	}
	a.proven = !g.cfg.Durable || !g.member() || g.cfg.Fresh && a.older == 0
	return a
}

// apart reports whether this replica must not count: it may have forgotten something, or has.
func (a *age) apart() bool { return !a.proven || a.group.unsure.on }

// number numbers the next batch. While the replica is apart nobody depends on it, and the
// number stays: a greater one would hide what is missing below it.
func (a *age) number() uint64 {
	if a.proven {
		a.written++
	}
	return a.written
}

// shows is the number on which a message depends that is sent now.
func (a *age) shows() uint64 {
	if a.proven && a.group.disk.counts() {
		return a.written + 1
	}
	return a.written
}

// stands is the number that others are to hear of while this replica is at rest.
func (a *age) stands() uint64 {
	if a.group.cfg.Behind.Interval > 0 {
		return a.kept
	}
	return a.shows()
}

// compare takes what an envelope shows of the store of its sender, and returns what is
// remembered beyond what the sender's node has found there, 0 for nothing. A message of a
// former life that comes late looks the same, and is of use for judging the present one.
func (a *age) compare(p *peer, e Envelope) (beyond uint64) {
	if !a.group.cfg.Durable || e.Written == 0 && a.shown[e.From].ID == 0 {
		return 0
	}
	s := a.shown[e.From]
	before := s
	switch top := max(s.Written, s.Before); {
	case s.ID != 0 && s.UID == p.node.UID:
		s.Written = max(s.Written, e.Written)
	case e.Loaded < top:
		s.Before, beyond = max(s.Before, e.Written), top
	default:
		s = Shown{ID: e.From, UID: p.node.UID, Written: e.Written, Before: top}
	}
	if s.UID == p.node.UID && s.Before > e.Loaded {
		beyond = s.Before
	}
	if e.Apart && e.Written == e.Loaded {
		// Nothing depends on this node yet. It may run with a copy of the disk of a member that
		// was not heard yet, and the numbers of the copy must not judge that one.
		return beyond
	}
	if s != before {
		a.shown[e.From], a.news = s, true
	}
	return beyond
}

// forget forgets the numbers that were shown in another lineage: an operator has decided which
// copy counts.
func (a *age) forget() {
	clear(a.shown)
	a.news, a.proven, a.older, a.group.rerouted, a.group.unsure.on = true, true, 0, true, false
}

// prune forgets replicas that count nowhere and are not there: what they come back with is
// dropped anyhow.
func (a *age) prune() {
	g := a.group
	maps.DeleteFunc(a.shown, func(id ReplicaID, _ Shown) bool { return !g.reg.In(id) && g.peers[id] == nil })
}

// remembered returns what is to be written of what others have shown, sorted.
func (a *age) remembered() []Shown {
	all := make([]Shown, 0, len(a.shown))
	for _, s := range a.shown { //quorate:unordered sorted below
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y Shown) int { return compare64(uint64(x.ID), uint64(y.ID)) })
	return all
}

// tick asks the members that have not compared yet, and each noteEvery shows this replica's
// number and writes those of others.
func (a *age) tick() {
	g := a.group
	if !g.disk.used() {
		return
	}
	if !a.proven {
		a.ask()
		a.look()
	}
	if now := g.m.now.Mono; now.Sub(a.noted) >= noteEvery {
		a.noted = now
		if a.news {
			g.disk.noted = true
		}
		for _, p := range g.sorted() {
			if g.reg != nil && g.reg.In(p.id) && p.shown < a.stands() {
				g.send(p, Hello{})
			}
		}
	}
}

// witnesses returns the members that have to compare before this replica takes part: all that
// may hold the group and are there.
func (a *age) witnesses() []*peer {
	g := a.group
	var all []*peer
	for _, of := range g.m.replicas(g.cfg.Role) {
		if p := g.nodes[of.Node]; p != nil && of.Node != g.m.cfg.Self && g.counted(of.Node) && g.m.state.Reachable(of.Node) {
			all = append(all, p)
		}
	}
	return all
}

// ask asks the replicas that have not compared yet to do so.
func (a *age) ask() {
	for _, p := range a.witnesses() {
		if !p.agrees && p.id != 0 {
			a.group.send(p, Hello{Ask: true})
		}
	}
}

// look lets this replica take part as soon as everybody who is there has compared. What was
// written until then is numbered now, since from now on others depend on it.
func (a *age) look() {
	g := a.group
	if a.proven || a.older != 0 || g.m.state == nil || g.m.state.Member(g.m.cfg.Self) == nil {
		return
	}
	if slices.ContainsFunc(a.witnesses(), func(p *peer) bool { return !p.agrees }) {
		return
	}
	a.proven, g.rerouted = true, true
	g.disk.metaChanged()
	if g.reg != nil {
		a.joined()
	}
}

// joined has this replica take part, if nothing else keeps it apart.
func (a *age) joined() {
	g := a.group
	if g.rerouted = true; a.apart() {
		return
	}
	g.behind.look()
	g.ops.rejoined()
	g.greet()
}

// told takes the word of another replica that this one's store is older.
func (a *age) told(p *peer, b Aged) {
	g := a.group
	if !g.disk.used() || b.Of != g.self || b.Written <= a.loaded || a.older != 0 {
		return
	}
	a.older, a.witness, a.proven = b.Written, p.node.Address.String(), false
	g.rerouted = true
	g.m.counts.Aged++
	g.disk.metaChanged()
	g.passes.endAll()
	g.change.attempt = nil
	g.m.out.Decide(ComponentName, g.cfg.Name, "this store is older than what others remember of it: it takes no part",
		fmt.Sprintf("it was put back to batch %d, and %s knows of batch %d", a.loaded, a.witness, a.older))
}

// why says for people why this replica takes no part, "" if it does.
func (a *age) why() string {
	switch {
	case a.older != 0:
		return "its store was put back to an older state: it is put aside as soon as the other replicas can go on without it; " +
			"if too many of them are gone, start them again, or accept the loss at the replica that holds the most"
	case !a.proven:
		return "its store is compared with what the other replicas remember of it"
	case a.apart():
		return "its node has ended before everything was written that was acknowledged: it takes in what the others hold; " +
			"if too many of them are gone, start them again, or accept the loss at the replica that holds the most"
	default:
		return ""
	}
}

// spared reports whether the others can go on without this replica: in each set that counts
// they win.
func (a *age) spared() bool {
	g := a.group
	if !g.holds() {
		return true
	}
	in := func(id ReplicaID) bool {
		p := g.peers[id]
		return p != nil && id != g.self && p.count == yes && p.store != aged && g.present(id)
	}
	return g.views.each(func(v *view) bool {
		return !v.has(g.self) || v.current.Wins(in) && (g.sealed || len(v.old) == 0 || v.old.Wins(in))
	})
}

// setAside drops what this replica holds, of which the store keeps a copy.
func (a *age) setAside() {
	g := a.group
	g.spread.rest()
	g.drop(true)
	g.passes.endAll()
	g.change.reset()
	g.sweep.restore(SweepMark{})
	g.disk.metaChanged()
	if g.reg != nil {
		g.ops.adopted(true) // The register is the same: other replicas have kept what they acknowledged.
	}
}

// renewed goes on under another id, as a replica that has nothing.
func (a *age) renewed(id ReplicaID) {
	g := a.group
	g.m.out.Decide(ComponentName, g.cfg.Name, "the older store is put aside", fmt.Sprintf("replica %x begins anew, empty, as %x", uint64(g.self), uint64(id)))
	delete(g.knows, g.self)
	g.self = id
	a.older, a.witness, a.proven, g.unsure.on = 0, "", true, false
	if g.reg != nil {
		g.knows[id] = true
		g.behind.begin()
	}
	g.disk.metaChanged()
	if g.route(); g.reg != nil {
		g.greet()
	}
}

// renewal is where the machine stands with giving its store another id.
type renewal struct {
	aside bool // What the groups held is put aside.
	call  machine.CallID
	until machine.Instant
}

// durable returns the groups that are in the store of this node.
func (m *Machine) durable() []*group {
	return slices.DeleteFunc(slices.Clone(m.groups), func(g *group) bool { return !g.disk.used() })
}

// renew makes another replica of one with an older store. The groups share the store, so all
// of them begin anew: first, in one step, what they hold is put aside, when the others can go
// on without it; when that is written the store is given another id.
func (m *Machine) renew() {
	groups := m.durable()
	if m.state == nil || !slices.ContainsFunc(groups, func(g *group) bool { return g.age.older != 0 }) {
		m.renewal = renewal{}
		return
	}
	r := &m.renewal
	if slices.ContainsFunc(groups, func(g *group) bool { return g.age.older == 0 }) {
		r.aside = false
	}
	switch {
	case !r.aside:
		if slices.ContainsFunc(groups, func(g *group) bool { return !g.age.spared() }) {
			return
		}
		for _, g := range groups {
			g.age.older, g.age.proven = max(g.age.older, g.age.loaded+1), false
			g.age.setAside()
		}
		r.aside = true
	case slices.ContainsFunc(groups, func(g *group) bool { return g.disk.dirty() || g.disk.writing != 0 || g.disk.failed != nil }):
	case r.call == 0 || m.now.Mono >= r.until:
		m.call++
		r.call, r.until = m.call, m.now.Mono.Add(m.cfg.Timing.Store)
		m.out.Add(machine.Call{ID: r.call, Port: StorePort, Key: "id", Request: RenewID{Of: groups[0].self}, Limit: m.cfg.Timing.Store})
	}
}

// renewed takes the answer of the store to [RenewID].
func (m *Machine) renewed(in machine.Called) {
	if m.renewal.call == 0 || in.ID != m.renewal.call {
		return
	}
	m.renewal.call = 0
	id, ok := in.Result.(ReplicaID)
	if late := m.now.Mono >= m.renewal.until; late || in.Err != nil || !ok || id == 0 {
		m.counts.StoreFailures++
		return // The next tick asks again.
	}
	groups := m.durable()
	m.renewal = renewal{}
	for _, g := range groups {
		g.age.renewed(id)
	}
}

// Remembers returns the number of the last batch of a replica's store of which this node
// knows.
func (m *Machine) Remembers(group uint8, id ReplicaID) uint64 {
	s := m.groups[group].age.shown[id]
	return max(s.Written, s.Before)
}
