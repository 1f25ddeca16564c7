// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// One-decree Paxos (Lamport 2001, "Paxos Made Simple", §2) for the value of each generation: first the acceptor, whose
// state is stored, then the proposer's side, whose state is not. An attempt is one ballot: it asks acceptors again that
// have not answered, and is given up, for one with a higher ballot, when it is refused or stands still for too long.

// change decides the generation after the present one. The acceptors are the replicas of
// Current, and a winning part of them decides; the first generation is decided by all
// replicas that there are, since there is no set yet.
type change struct {
	*known

	disk *disk // The store: promises and acceptances are written before they are sent.

	// The acceptor: the ballot that was promised, the value that was accepted and its ballot, and the node to which the
	// ballot was promised, the zero NodeID if that was before this node started.
	promised, accepted Ballot
	value              *Register
	asker              gossip.NodeID

	// The proposer: the attempt of this replica, nil while there is none.
	attempt *attempt
	beat    Ballot // The ballot above which the next attempt has to be.
	round   uint32 // The round of the last attempt: no ballot is used twice.
	stood   int    // How many attempts in a row have stood still.
}

// attempt is one ballot of this replica.
type attempt struct {
	ballot    Ballot
	value     *Register
	acceptors Set
	unanimous bool               // All acceptors have to agree.
	accepting bool               // Enough promises have come: the attempt asks for acceptances.
	best      Ballot             // The highest ballot of a value that a promise has named.
	agreed    map[ReplicaID]bool // The acceptors that have promised or, once it is accepting, accepted.
	moved     machine.Instant    // When the attempt began, or began to ask for acceptances.
	asked     machine.Instant    // When the acceptors were asked last.
}

// decided reports whether enough acceptors have agreed.
func (a *attempt) decided() bool {
	in := func(id ReplicaID) bool { return a.agreed[id] }
	if a.unanimous {
		return a.acceptors.count(in) == len(a.acceptors)
	}
	return a.acceptors.Wins(in)
}

// reset forgets both sides: another generation is decided from now on.
func (c *change) reset() {
	c.promised, c.accepted, c.value, c.asker = Ballot{}, Ballot{}, nil, gossip.NodeID{}
	c.attempt, c.beat, c.stood = nil, Ballot{}, 0
}

// slot is the generation that is decided next.
func (c *change) slot() uint64 { return c.gen() + 1 }

// prepared answers a Prepare; nil: no answer, since this replica has no vote on that generation.
func (c *change) prepared(node gossip.NodeID, b Prepare) (answer any) {
	if b.Slot != c.slot() || !c.votes() {
		return nil
	}
	return c.promiseOwn(node, b)
}

// votes reports whether this replica has a vote on the next generation. For the first generation the node need not be
// one that may host: that is decided while nodes form or join a cluster, and by all of them.
func (c *change) votes() bool {
	return c.member() && (c.reg == nil || c.m.mayHost())
}

// promiseOwn promises a node to accept nothing below a ballot, unless a higher one was promised. A ballot is promised
// again to the same node only: a node that was started again as the same replica may have forgotten which value it
// proposed with that ballot.
func (c *change) promiseOwn(node gossip.NodeID, b Prepare) Promise {
	switch {
	case c.promised.Less(b.Ballot):
		c.promised, c.asker = b.Ballot, node
		c.disk.metaChanged()
	case b.Ballot != c.promised || node != c.asker:
		return Promise{Slot: b.Slot, Ballot: c.promised, Refused: true}
	}
	return Promise{Slot: b.Slot, Ballot: b.Ballot, Accepted: c.accepted, Value: c.value}
}

// accept answers an Accept; nil: no answer, since this replica has no vote on that generation.
func (c *change) accept(node gossip.NodeID, b Accept) (answer any) {
	if b.Slot != c.slot() || b.Value == nil || b.Value.Gen != b.Slot || !c.votes() {
		return nil
	}
	return c.acceptOwn(node, b)
}

// acceptOwn accepts a value from a node, unless a higher ballot was promised.
func (c *change) acceptOwn(node gossip.NodeID, b Accept) Accepted {
	if b.Ballot.Less(c.promised) {
		return Accepted{Slot: b.Slot, Ballot: c.promised, Refused: true}
	}
	if b.Ballot != c.accepted {
		c.promised, c.asker, c.accepted, c.value = b.Ballot, node, b.Ballot, b.Value
		c.disk.metaChanged()
	}
	return Accepted{Slot: b.Slot, Ballot: b.Ballot}
}

// busy reports whether an attempt is under way, and gives up one that stands still for too long. Again are the
// questions to repeat to acceptors that have not answered.
func (c *change) busy() (busy bool, again []peerMessage) {
	a := c.attempt
	if a == nil {
		return false, nil
	}
	if c.m.now.Mono.Sub(a.moved) >= c.patience() {
		c.attempt = nil
		c.stood++
		return false, nil
	}
	if c.m.now.Mono.Sub(a.asked) >= c.m.cfg.Timing.Retry {
		again = c.toAcceptors()
	}
	return true, again
}

// patience is for how long an attempt waits for promises, and then for acceptances. It doubles with each attempt in a
// row that has stood still, since a slow store may need longer for each answer.
func (c *change) patience() time.Duration {
	t := c.m.cfg.Timing
	d := t.Patient
	for i := 0; i < c.stood && d < t.Store; i++ {
		d = min(2*d, t.Store)
	}
	return d
}

// propose begins an attempt to have a register decided for the next generation, and returns the questions to acceptors.
func (c *change) propose(p *proposal) []peerMessage {
	c.round = max(c.round, c.beat.Round, c.promised.Round) + 1
	c.attempt = &attempt{
		ballot: Ballot{Round: c.round, By: c.self}, value: &p.v, acceptors: p.acceptors, unanimous: p.unanimous,
		agreed: map[ReplicaID]bool{}, moved: c.m.now.Mono,
	}
	return c.toAcceptors()
}

// own returns the promise of this replica for its own attempt, false if it is not one of the acceptors.
func (c *change) own() (Promise, bool) {
	if !c.attempt.acceptors.Has(c.self) {
		return Promise{}, false
	}
	return c.promiseOwn(c.m.cfg.Self, c.attempt.prepare(c.slot())), true
}

func (a *attempt) prepare(slot uint64) Prepare { return Prepare{Slot: slot, Ballot: a.ballot} }

func (a *attempt) accept(slot uint64) Accept {
	return Accept{Slot: slot, Ballot: a.ballot, Value: a.value}
}

// toAcceptors returns the questions of the attempt, for promises or for acceptances, to all other acceptors that have
// not agreed yet.
func (c *change) toAcceptors() (out []peerMessage) {
	a := c.attempt
	a.asked = c.m.now.Mono
	var ask any = a.prepare(c.slot())
	if a.accepting {
		ask = a.accept(c.slot())
	}
	for _, r := range a.acceptors {
		if p := c.peers[r.ID]; p != nil && r.ID != c.self && !a.agreed[r.ID] {
			out = append(out, peerMessage{p, ask})
		}
	}
	return out
}

// promise counts a promise, and reports whether there are enough now. Then the attempt asks for acceptances: of the
// value that an acceptor has accepted with the highest ballot or, if none has accepted any, of its own.
func (c *change) promise(id ReplicaID, b Promise) (enough bool, out []peerMessage) {
	if !c.mine(b.Slot, b.Ballot, b.Refused) || c.attempt.accepting || !c.attempt.acceptors.Has(id) {
		return false, nil
	}
	a := c.attempt
	a.agreed[id] = true
	if b.Value != nil && a.best.Less(b.Accepted) {
		a.best, a.value = b.Accepted, b.Value
	}
	if !a.decided() {
		return false, nil
	}
	a.accepting, a.agreed, a.moved = true, map[ReplicaID]bool{}, c.m.now.Mono
	return true, c.toAcceptors()
}

// ownAccepted returns the acceptance of this replica for its own attempt, false if it is not one of the acceptors.
func (c *change) ownAccepted() (Accepted, bool) {
	if !c.attempt.acceptors.Has(c.self) {
		return Accepted{}, false
	}
	return c.acceptOwn(c.m.cfg.Self, c.attempt.accept(c.slot())), true
}

// acceptance counts an acceptance, and returns the value that is decided with enough of them, else nil.
func (c *change) acceptance(id ReplicaID, b Accepted) *Register {
	if !c.mine(b.Slot, b.Ballot, b.Refused) || !c.attempt.accepting || !c.attempt.acceptors.Has(id) {
		return nil
	}
	if c.attempt.agreed[id] = true; !c.attempt.decided() {
		return nil
	}
	return c.attempt.value
}

// mine reports whether an answer is one to the present attempt, and agrees. A refusal ends the attempt, and names the
// ballot above which the next one has to be: that of the attempt itself, if the acceptor has promised it and was
// restarted since, so that it no longer knows to whom.
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
