// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/quorate/quorate/machine"

// One-decree Paxos (Lamport 2001, "Paxos Made Simple", §2) for the value of each
// generation: first the side that accepts, which remembers, then the side that proposes,
// which forgets.

// change decides the generation after the present one. The acceptors are the replicas of
// Current, and a winning part of them decides; the first generation is decided by all
// replicas that there are, since there is no set yet.
type change struct {
	group *group

	// What was promised and accepted for the next generation.
	promised, accepted Ballot
	value              *Register

	// The attempt of this replica, nil while there is none.
	attempt *attempt
	beat    Ballot // The ballot to beat with the next attempt.
	round   uint32 // The round of the last attempt: no ballot is used twice.
}

// attempt is one ballot of this replica.
type attempt struct {
	ballot    Ballot
	value     *Register
	acceptors Set
	unanimous bool // All acceptors have to agree.
	accepting bool // The promises are there.
	best      Ballot
	agreed    map[ReplicaID]bool
	began     machine.Instant
}

// decided reports whether those that have agreed are enough.
func (a *attempt) decided() bool {
	in := func(id ReplicaID) bool { return a.agreed[id] }
	if a.unanimous {
		return a.acceptors.count(in) == len(a.acceptors)
	}
	return a.acceptors.Wins(in)
}

// reset begins the decision of another generation.
func (c *change) reset() {
	c.promised, c.accepted, c.value = Ballot{}, Ballot{}, nil
	c.attempt, c.beat = nil, Ballot{}
}

// slot is the generation that is decided next.
func (c *change) slot() uint64 { return c.group.gen() + 1 }

// prepared answers a Prepare.
func (c *change) prepared(p *peer, b Prepare) {
	if b.Slot == c.slot() && c.group.member() {
		c.group.send(p, c.promise1(b))
	}
}

// promise1 promises to accept nothing below a ballot, unless a higher one was promised.
func (c *change) promise1(b Prepare) Promise {
	if !c.promised.Less(b.Ballot) {
		return Promise{Slot: b.Slot, Ballot: c.promised, Refused: true}
	}
	c.promised = b.Ballot
	c.group.disk.metaChanged()
	return Promise{Slot: b.Slot, Ballot: b.Ballot, Accepted: c.accepted, Value: c.value}
}

// accept answers an Accept.
func (c *change) accept(p *peer, b Accept) {
	if b.Slot == c.slot() && b.Value != nil && b.Value.Gen == b.Slot && c.group.member() {
		c.group.send(p, c.accept1(b))
	}
}

// accept1 accepts a value, unless a higher ballot was promised.
func (c *change) accept1(b Accept) Accepted {
	if b.Ballot.Less(c.promised) {
		return Accepted{Slot: b.Slot, Ballot: c.promised, Refused: true}
	}
	c.promised, c.accepted, c.value = b.Ballot, b.Ballot, b.Value
	c.group.disk.metaChanged()
	return Accepted{Slot: b.Slot, Ballot: b.Ballot}
}

// busy reports whether an attempt is under way and not standing still.
func (c *change) busy() bool {
	g := c.group
	return c.attempt != nil && g.m.now.Mono.Sub(c.attempt.began) < g.m.cfg.Timing.Patient
}

// propose begins an attempt to make a value that of the next generation.
func (c *change) propose(v Register, acceptors Set, unanimous bool) {
	g := c.group
	c.round = max(c.round, c.beat.Round, c.promised.Round) + 1
	c.attempt = &attempt{
		ballot: Ballot{Round: c.round, By: g.self}, value: &v, acceptors: acceptors, unanimous: unanimous,
		agreed: map[ReplicaID]bool{}, began: g.m.now.Mono,
	}
	ask := Prepare{Slot: c.slot(), Ballot: c.attempt.ballot}
	c.toAcceptors(ask)
	if acceptors.Has(g.self) {
		c.promiseOf(g.self, c.promise1(ask))
	}
}

// toAcceptors sends a message to all acceptors but this replica.
func (c *change) toAcceptors(body any) {
	for _, r := range c.attempt.acceptors {
		if p := c.group.peers[r.ID]; p != nil && r.ID != c.group.self {
			c.group.send(p, body)
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
	a.accepting, a.agreed = true, map[ReplicaID]bool{}
	ask := Accept{Slot: b.Slot, Ballot: a.ballot, Value: a.value}
	c.toAcceptors(ask)
	if a.acceptors.Has(c.group.self) {
		c.acceptanceOf(c.group.self, c.accept1(ask))
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
// attempt, and names the ballot to beat.
func (c *change) mine(slot uint64, b Ballot, refused bool) bool {
	if slot != c.slot() || c.attempt == nil {
		return false
	}
	if !refused {
		return b == c.attempt.ballot
	}
	if c.attempt.ballot.Less(b) {
		c.beat, c.attempt = b, nil
	}
	return false
}
