// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// What follows for the group from the state of its store, see [storeCheck]: who is asked to compare and when this
// replica takes part ([group.tickStore], [group.compared]); what is done about an older store ([group.putBack]), which
// becomes that of another replica ([Machine.renew]); how an unsure replica takes in what it may have lost
// ([group.restore]).

// RenewID is the request of a call to [StorePort] to give the store another id, unless it has
// another one already. The result is the id of the store, a [ReplicaID].
type RenewID struct{ Of ReplicaID }

// noteEvery is how often a replica writes down the numbers that others have shown, and shows
// its own number to the replicas that have not heard it.
const noteEvery = time.Second

// behindStore reports whether the store is to say that more may be acknowledged than is in it.
func (k *known) behindStore() bool { return k.storeCheck.unclean || k.cfg.WriteBehind.Interval > 0 }

// tickStore asks the members that have not compared yet, and each noteEvery shows this replica's
// number and writes those of others.
func (g *group) tickStore() {
	s := &g.storeCheck
	if !g.disk.used {
		return
	}
	if !s.participation.compared() {
		for _, p := range g.witnesses() {
			if !p.agrees && p.id != 0 {
				g.send(p, Hello{Ask: true})
			}
		}
		g.compared()
	}
	if now := g.m.now.Mono; now.Sub(s.noted) >= noteEvery {
		s.noted = now
		if s.news {
			g.disk.noted = true
		}
		for _, p := range g.sorted() {
			if g.reg != nil && g.reg.In(p.id) && p.shown < g.disk.announced(s.participation) {
				g.send(p, Hello{})
			}
		}
	}
}

// witnesses returns the members that have to compare before this replica takes part: all that
// may hold the group and are there.
func (k *known) witnesses() []*peer {
	var all []*peer
	for _, of := range k.m.replicas(k.cfg.Role) {
		if p := k.nodes[of.Node]; p != nil && of.Node != k.m.cfg.Self && k.m.counted(of.Node, k.cfg.Role) && k.m.state.Reachable(of.Node) {
			all = append(all, p)
		}
	}
	return all
}

// compared lets this replica take part as soon as everybody who is there has compared. What was
// written until then is numbered now, since from now on others depend on it.
func (g *group) compared() {
	if g.storeCheck.participation != apart || g.m.state == nil || g.m.state.Member(g.m.cfg.Self) == nil ||
		slices.ContainsFunc(g.witnesses(), func(p *peer) bool { return !p.agrees }) {
		return
	}
	g.storeCheck.endComparison()
	g.rerouted = true
	g.disk.metaChanged()
	if g.reg != nil {
		g.joined()
	}
}

// joined has this replica take part, if nothing else keeps it apart.
func (g *group) joined() {
	if g.rerouted = true; g.apart() {
		return
	}
	g.caughtUp(g.transfer.enough())
	g.ops.rejoined()
	g.greet()
}

// claimed reports whether a message in the name of a replica is not heard, since that is the
// replica of another member.
func (g *group) claimed(by gossip.NodeID, id ReplicaID) bool {
	p := g.peers[id]
	if id == g.self && g.member() {
		return g.storeCheck.refuse(by, claim{id, g.m.cfg.Self}, false)
	}
	// At one address the younger node counts: it has started again.
	if p == nil || p.node == by || p.node.Address == by.Address {
		return false
	}
	first, now := g.m.longer(by, p.node), g.m.now.Mono
	if !first && (p.verified == 0 || now.Sub(p.verified) >= g.m.cfg.Timing.Gather) {
		// Its store may have begun anew under another id, which is told to those alone who hold copies.
		p.verified = now
		g.send(p, Hello{Ask: true})
	}
	return g.storeCheck.refuse(by, claim{id, p.node}, first)
}

// longer reports whether a node has been up for longer than another. One that is joining is the
// younger one.
func (m *env) longer(a, b gossip.NodeID) bool {
	x, y := m.state.Member(a), m.state.Member(b)
	if x == nil || y == nil {
		return x != nil
	}
	return x.UpNumber != 0 && (y.UpNumber == 0 || x.UpNumber < y.UpNumber)
}

// putBack takes the word of another replica that this one's store is older.
func (g *group) putBack(p *peer, b OlderStore) {
	s := &g.storeCheck
	if !g.disk.used || b.Of != g.self || b.Written <= g.disk.loaded || s.participation == older {
		return
	}
	s.putBack(b.Written, p.node.Address.String())
	g.rerouted = true
	g.m.counts.Aged++
	g.disk.metaChanged()
	g.passes.endAll()
	g.change.attempt = nil
	g.m.out.Decide(ComponentName, g.cfg.Name, "this store is older than what others remember of it: it takes no part",
		fmt.Sprintf("it was put back to batch %d, and %s knows of batch %d", g.disk.loaded, s.witness, s.older))
}

// spared reports whether the others can go on without this replica: in each set that counts
// they win.
func (k *known) spared() bool {
	if !k.holds() {
		return true
	}
	in := func(id ReplicaID) bool {
		p := k.peers[id]
		return p != nil && id != k.self && p.participation == takesPart && p.lostBatch == 0 && k.present(id)
	}
	return k.views.each(func(v *view) bool {
		return !v.has(k.self) || v.current.Wins(in) && (k.sealed || len(v.old) == 0 || v.old.Wins(in))
	})
}

// setAside drops what this replica holds, of which the store keeps a copy.
func (g *group) setAside() {
	g.storeCheck.putBack(max(g.storeCheck.older, g.disk.loaded+1), g.storeCheck.witness)
	g.flushDeltas()
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
func (g *group) renewed(id ReplicaID) {
	g.m.out.Decide(ComponentName, g.cfg.Name, "the older store is put aside", fmt.Sprintf("replica %x begins anew, empty, as %x", uint64(g.self), uint64(id)))
	delete(g.knows, g.self)
	g.self = id
	g.storeCheck.reset()
	if g.reg != nil {
		g.knows[id] = true
		g.caughtUp(g.transfer.begin())
	}
	g.disk.metaChanged()
	if g.route(); g.reg != nil {
		g.greet()
	}
}

// idChange is where the machine stands with giving its store another id.
type idChange struct {
	aside bool // What the groups held is put aside.
	call  machine.CallID
	until machine.Instant
}

// durable returns the groups that are in the store of this node.
func (m *Machine) durable() []*group {
	return slices.DeleteFunc(slices.Clone(m.groups), func(g *group) bool { return !g.disk.used })
}

// renew makes another replica of one with an older store. The groups share the store, so all
// of them begin anew: first, in one step, what they hold is put aside, when the others can go
// on without it; when that is written the store is given another id.
func (m *Machine) renew() {
	groups := m.durable()
	if m.state == nil || !slices.ContainsFunc(groups, func(g *group) bool { return g.storeCheck.participation == older }) {
		m.idChange = idChange{}
		return
	}
	r := &m.idChange
	if slices.ContainsFunc(groups, func(g *group) bool { return g.storeCheck.participation != older }) {
		r.aside = false
	}
	switch {
	case !r.aside:
		if slices.ContainsFunc(groups, func(g *group) bool { return !g.spared() }) {
			return
		}
		for _, g := range groups {
			g.setAside()
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
	if m.idChange.call == 0 || in.ID != m.idChange.call {
		return
	}
	m.idChange.call = 0
	id, ok := in.Result.(ReplicaID)
	if late := m.now.Mono >= m.idChange.until; late || in.Err != nil || !ok || id == 0 {
		m.counts.StoreFailures++
		return // The next tick asks again.
	}
	groups := m.durable()
	m.idChange = idChange{}
	for _, g := range groups {
		g.renewed(id)
	}
}

// restore takes in from those whose copies are needed, while this replica is unsure.
func (g *group) restore() {
	if g.storeCheck.participation != unsure || g.reg == nil {
		return
	}
	homes := g.views.with(g.self)
	for _, r := range homes {
		g.storeCheck.noteMissing(r.ID, g.there(r.ID) || g.unnamed(), g.m.now.Mono)
	}
	if g.restored(); g.storeCheck.participation != unsure {
		return
	}
	g.passes.giveUp()
	for _, p := range g.sorted() {
		if len(g.passes.open) >= 2*sourcesAtOnce {
			return
		}
		if g.present(p.id) && homes.Has(p.id) && g.storeCheck.needsCopy(p, g.latestUnsure()) && !g.passes.with(p) {
			g.post(g.passes.begin(p, false))
		}
	}
}

// latestUnsure returns when it was heard last of another replica that it is unsure.
func (k *known) latestUnsure() (at machine.Instant) {
	for _, p := range k.peers { //quorate:unordered a maximum
		at = max(at, p.unsure)
	}
	return at
}

// restored ends being unsure as soon as enough was taken in.
func (g *group) restored() {
	s := &g.storeCheck
	if s.participation != unsure || g.reg == nil {
		return
	}
	sure := func(id ReplicaID) bool { return s.copies[id].sure }
	at := g.latestUnsure()
	// Nobody waits for the disk of a replica that has been that of no member for long.
	gone := func(id ReplicaID) bool {
		return s.gone[id] != 0 && g.m.now.Mono.Sub(s.gone[id]) >= g.m.cfg.Timing.Gather
	}
	failed := func(id ReplicaID) bool { return id == g.self || gone(id) || s.stillUnsure(g.peers[id], at) }
	has := func(id ReplicaID) bool { return id == g.self || s.hasCopy(id, at) }
	if g.views.each(func(v *view) bool {
		return !v.has(g.self) || v.current.restores(g.self, sure) || v.current.failedTogether(failed, has, gone)
	}) {
		g.becomeSure()
	}
}

// becomeSure ends being unsure, or that this replica would be when it has compared.
func (g *group) becomeSure() {
	compared := g.storeCheck.participation.compared()
	g.storeCheck.restored()
	g.m.counts.Restored++
	g.disk.metaChanged()
	if compared && g.m.state != nil && g.reg != nil {
		g.m.out.Decide(ComponentName, g.cfg.Name, "this replica is sure again", "what it may have lost with its former node was taken in from others")
		g.joined()
	}
}

// Remembers returns the number of the last batch of a replica's store of which this node
// knows.
func (m *Machine) Remembers(group uint8, id ReplicaID) uint64 {
	s := m.groups[group].storeCheck.shown[id]
	return max(s.Written, s.Before)
}
