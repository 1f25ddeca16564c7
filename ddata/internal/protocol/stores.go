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

// What a group does about the state of its store, see [storeCheck]: it has the members compare the store, and takes
// part when they have ([group.tickStore], [group.compared]); an older store becomes, empty, that of another replica
// ([group.putBack], [Machine.renew]); and an unsure replica takes in from others what it may have lost
// ([group.restore]).

// RenewID is the request of a call to [StorePort] to give the store an id other than Of, unless it has another one
// already. The result is the id of the store, a [ReplicaID].
type RenewID struct{ Of ReplicaID }

// noteEvery is how often a replica writes down how far the stores of others have come, and tells the replicas that do
// not know it how far its own one has.
const noteEvery = time.Second

// behindStore reports whether the store is to say that more may be acknowledged than is in it.
func (k *known) behindStore() bool { return k.storeCheck.unclean || k.cfg.WriteBehind.Interval > 0 }

// tickStore asks the members that have not compared the store yet, and, each noteEvery, exchanges how far stores have
// come.
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

// witnesses returns the members that have to compare the store before this replica takes part: all that may hold the
// group and can be reached.
func (k *known) witnesses() []*peer {
	var all []*peer
	for _, of := range k.m.replicas(k.cfg.Role) {
		if p := k.nodes[of.Node]; p != nil && of.Node != k.m.cfg.Self && k.m.counted(of.Node, k.cfg.Role) && k.m.state.Reachable(of.Node) {
			all = append(all, p)
		}
	}
	return all
}

// compared has this replica take part if all witnesses have compared its store. What was written until now has had no
// numbers of its own; it gets one, since from now on others depend on it.
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

// joined is called when this replica may have come to take part, and then has the other parts go on with it.
func (g *group) joined() {
	if g.rerouted = true; g.apart() {
		return
	}
	g.caughtUp(g.transfer.enough())
	g.ops.rejoined()
	g.greet()
}

// claimed reports whether a message in the name of a replica is refused, since that is the replica of another member.
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
		// Its store may have been given another id since, of which only nodes with replicas are told: the node is
		// asked.
		p.verified = now
		g.send(p, Hello{Ask: true})
	}
	return g.storeCheck.refuse(by, claim{id, p.node}, first)
}

// longer reports whether a has been up for longer than b. A node that is joining has not been up.
func (m *env) longer(a, b gossip.NodeID) bool {
	x, y := m.state.Member(a), m.state.Member(b)
	if x == nil || y == nil {
		return x != nil
	}
	return x.UpNumber != 0 && (y.UpNumber == 0 || x.UpNumber < y.UpNumber)
}

// putBack handles the message of a peer that this replica's store is older than what the peer remembers of it.
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

// spared reports whether the others can go on without this replica: they are a winning part of each set that counts.
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

// setAside drops what this replica holds, which has an older store. The store keeps a copy.
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

// renewed has the group go on as another replica, which holds nothing.
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

// idChange is how far the machine has come with giving its store another id.
type idChange struct {
	aside bool            // The groups have set aside what they held.
	call  machine.CallID  // The call that gives the id, 0 for none.
	until machine.Instant // When that call is given up.
}

// durable returns the groups that this node has in its store.
func (m *Machine) durable() []*group {
	return slices.DeleteFunc(slices.Clone(m.groups), func(g *group) bool { return !g.disk.used })
}

// renew gives an older store another id, which makes it that of another replica. The groups share the store, so all of
// them begin again: as soon as the others can go on without them, they set aside, in one step, what they hold; when
// that is written, the store is given its id.
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

// restore begins passes with the peers whose copies this replica needs while it is unsure.
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

// latestUnsure returns the latest time at which another replica was found to be unsure.
func (k *known) latestUnsure() (at machine.Instant) {
	for _, p := range k.peers { //quorate:unordered a maximum
		at = max(at, p.unsure)
	}
	return at
}

// restored makes this replica sure if it has taken in enough copies.
func (g *group) restored() {
	s := &g.storeCheck
	if s.participation != unsure || g.reg == nil {
		return
	}
	sure := func(id ReplicaID) bool { return s.copies[id].sure }
	at := g.latestUnsure()
	// A replica that has belonged to no member for long is not waited for: its disk may never come back.
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

// becomeSure notes that this replica lacks nothing any more of what it has acknowledged: it is not unsure, and does not
// become so when its store is compared.
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

// Remembers returns the number of the last batch of a replica's store of which this node knows.
func (m *Machine) Remembers(group uint8, id ReplicaID) uint64 {
	s := m.groups[group].storeCheck.shown[id]
	return max(s.Written, s.Before)
}
