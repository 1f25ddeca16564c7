// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// One-decree Paxos (Lamport 2001, "Paxos Made Simple", §2) for the value of each
// generation: first the side that accepts, which remembers, then the side that proposes,
// which forgets. An attempt asks those again that have not answered, and is given up for one
// with another ballot when it is refused or stands still for too long.

// change decides the generation after the present one. The acceptors are the replicas of
// Current, and a winning part of them decides; the first generation is decided by all
// replicas that there are, since there is no set yet.
type change struct {
	group *group

	// What was promised and accepted for the next generation, and the node to which it was
	// promised, the zero NodeID if that was before this node started.
	promised, accepted Ballot
	value              *Register
	asker              gossip.NodeID

	// The attempt of this replica, nil while there is none.
	attempt *attempt
	beat    Ballot // The ballot to beat with the next attempt.
	round   uint32 // The round of the last attempt: no ballot is used twice.
	stood   int    // How many attempts in a row have stood still.
}

// attempt is one ballot of this replica.
type attempt struct {
	ballot    Ballot
	value     *Register
	acceptors Set
	unanimous bool // All acceptors have to agree.
	accepting bool // Enough promises have come: the attempt asks for acceptances.
	best      Ballot
	agreed    map[ReplicaID]bool
	moved     machine.Instant // When the attempt began, or began to ask for acceptances.
	asked     machine.Instant // When the acceptors were asked last.
}

// decided reports whether enough acceptors have agreed.
func (a *attempt) decided() bool {
	in := func(id ReplicaID) bool { return a.agreed[id] }
	if a.unanimous {
		return a.acceptors.count(in) == len(a.acceptors)
	}
	return a.acceptors.Wins(in)
}

// reset begins the decision of another generation.
func (c *change) reset() {
	c.promised, c.accepted, c.value, c.asker = Ballot{}, Ballot{}, nil, gossip.NodeID{}
	c.attempt, c.beat, c.stood = nil, Ballot{}, 0
}

// slot is the generation that is decided next.
func (c *change) slot() uint64 { return c.group.gen() + 1 }

// prepared answers a Prepare.
func (c *change) prepared(p *peer, b Prepare) {
	if b.Slot == c.slot() && c.votes() {
		c.group.send(p, c.promiseOwn(p.node, b))
	}
}

// votes reports whether this replica has a say in the next generation. The first one is created while nodes form or
// join a cluster, and by all of them.
func (c *change) votes() bool {
	return c.group.member() && (c.group.reg == nil || c.group.m.mayHost())
}

// promiseOwn promises a node to accept nothing below a ballot, unless a higher one was promised.
// The same ballot is promised again to a node that asks again. To another life of its
// replica it is not: that one may have forgotten which value went with the ballot.
func (c *change) promiseOwn(node gossip.NodeID, b Prepare) Promise {
	switch {
	case c.promised.Less(b.Ballot):
		c.promised, c.asker = b.Ballot, node
		c.group.disk.metaChanged()
	case b.Ballot != c.promised || node != c.asker:
		return Promise{Slot: b.Slot, Ballot: c.promised, Refused: true}
	}
	return Promise{Slot: b.Slot, Ballot: b.Ballot, Accepted: c.accepted, Value: c.value}
}

// accept answers an Accept.
func (c *change) accept(p *peer, b Accept) {
	if b.Slot == c.slot() && b.Value != nil && b.Value.Gen == b.Slot && c.votes() {
		c.group.send(p, c.acceptOwn(p.node, b))
	}
}

// acceptOwn accepts a value from a node, unless a higher ballot was promised.
func (c *change) acceptOwn(node gossip.NodeID, b Accept) Accepted {
	if b.Ballot.Less(c.promised) {
		return Accepted{Slot: b.Slot, Ballot: c.promised, Refused: true}
	}
	if b.Ballot != c.accepted {
		c.promised, c.asker, c.accepted, c.value = b.Ballot, node, b.Ballot, b.Value
		c.group.disk.metaChanged()
	}
	return Accepted{Slot: b.Slot, Ballot: b.Ballot}
}

// busy reports whether an attempt is under way and not standing still, and asks the acceptors
// again that have not answered the attempt.
func (c *change) busy() bool {
	g, a := c.group, c.attempt
	if a == nil {
		return false
	}
	if g.m.now.Mono.Sub(a.moved) >= c.patience() {
		c.attempt = nil
		c.stood++
		return false
	}
	if g.m.now.Mono.Sub(a.asked) >= g.m.cfg.Timing.Retry {
		c.toAcceptors()
	}
	return true
}

// patience is for how long an attempt waits for promises, and then for acceptances. It grows
// as attempts stand still: a store may need longer for each answer than the first one waited.
func (c *change) patience() time.Duration {
	t := c.group.m.cfg.Timing
	d := t.Patient
	for i := 0; i < c.stood && d < t.Store; i++ {
		d = min(2*d, t.Store)
	}
	return d
}

// propose begins an attempt to make a value that of the next generation.
func (c *change) propose(v Register, acceptors Set, unanimous bool) {
	g := c.group
	c.round = max(c.round, c.beat.Round, c.promised.Round) + 1
	c.attempt = &attempt{
		ballot: Ballot{Round: c.round, By: g.self}, value: &v, acceptors: acceptors, unanimous: unanimous,
		agreed: map[ReplicaID]bool{}, moved: g.m.now.Mono,
	}
	c.toAcceptors()
	if acceptors.Has(g.self) {
		c.promiseOf(g.self, c.promiseOwn(g.m.cfg.Self, c.attempt.prepare(c.slot())))
	}
}

func (a *attempt) prepare(slot uint64) Prepare { return Prepare{Slot: slot, Ballot: a.ballot} }

func (a *attempt) accept(slot uint64) Accept {
	return Accept{Slot: slot, Ballot: a.ballot, Value: a.value}
}

// toAcceptors asks all acceptors but this replica, for what the attempt needs now, that have
// not agreed to it yet.
func (c *change) toAcceptors() {
	g, a := c.group, c.attempt
	a.asked = g.m.now.Mono
	var ask any = a.prepare(c.slot())
	if a.accepting {
		ask = a.accept(c.slot())
	}
	for _, r := range a.acceptors {
		if p := g.peers[r.ID]; p != nil && r.ID != g.self && !a.agreed[r.ID] {
			g.send(p, ask)
		}
	}
}

func (c *change) promise(p *peer, b Promise) { c.promiseOf(p.id, b) }

// promiseOf counts a promise. With enough of them the value is proposed, or that of the
// highest ballot which any of them has accepted.
func (c *change) promiseOf(id ReplicaID, b Promise) {
	if !c.mine(b.Slot, b.Ballot, b.Refused) || c.attempt.accepting || !c.attempt.acceptors.Has(id) {
		return
	}
	a := c.attempt
	a.agreed[id] = true
	if b.Value != nil && a.best.Less(b.Accepted) {
		a.best, a.value = b.Accepted, b.Value
	}
	if !a.decided() {
		return
	}
	a.accepting, a.agreed, a.moved = true, map[ReplicaID]bool{}, c.group.m.now.Mono
	c.toAcceptors()
	if a.acceptors.Has(c.group.self) {
		c.acceptanceOf(c.group.self, c.acceptOwn(c.group.m.cfg.Self, a.accept(b.Slot)))
	}
}

func (c *change) acceptance(p *peer, b Accepted) { c.acceptanceOf(p.id, b) }

// acceptanceOf counts an acceptance. With enough of them the value is decided.
func (c *change) acceptanceOf(id ReplicaID, b Accepted) {
	if !c.mine(b.Slot, b.Ballot, b.Refused) || !c.attempt.accepting || !c.attempt.acceptors.Has(id) {
		return
	}
	c.attempt.agreed[id] = true
	if !c.attempt.decided() {
		return
	}
	g, v := c.group, c.attempt.value
	g.decide(v)
	g.adopt(v, g.reg == nil)
}

// mine reports whether an answer is one to the present attempt. A refusal ends the
// attempt, and names the ballot to beat: the attempt's own, if the acceptor does not know any
// more to whom it has promised that.
func (c *change) mine(slot uint64, b Ballot, refused bool) bool {
	if slot != c.slot() || c.attempt == nil || !c.votes() {
		return false
	}
	if !refused {
		return b == c.attempt.ballot
	}
	if c.attempt.ballot.Less(b) || b == c.attempt.ballot && !c.attempt.accepting {
		c.beat, c.attempt = b, nil
	}
	return false
}
