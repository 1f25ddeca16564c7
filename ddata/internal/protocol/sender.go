// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine"
)

// How messages and answers are sent: in an envelope that says what this node knows of the register and of its replica
// ([sender.send]), and, in a durable group, through the store, which also gets what has changed ([sender.changed]).

// sender is the part of a group that sends messages to other replicas and answers to the program. It notes which peers
// were sent the register.
type sender struct {
	*known

	disk   disk   // The store.
	sweep  sweep  // Sweeps.
	change change // Deciding the next generation.
}

// peerMessage is a message that is to be sent to a peer.
type peerMessage struct {
	to   *peer
	body any
}

// reply sends an answer, if there is one.
func (s *sender) reply(p *peer, answer any) {
	if answer != nil {
		s.send(p, answer)
	}
}

// post sends some messages.
func (s *sender) post(out ...peerMessage) {
	for _, l := range out {
		s.send(l.to, l.body)
	}
}

// flush has the store begin to write what has changed, if that is due.
func (s *sender) flush() {
	if changed := s.changed(); s.disk.used && s.disk.due(s.storeCheck.participation, changed) {
		s.disk.begin(s.meta(), s.storeCheck.participation)
		s.storeCheck.news = false
	}
}

// changedAtOnce is how many keys are taken from the table at a time.
const changedAtOnce = 1 << 16

// changed returns the keys that have changed in the table since the last call, and tells subscribers of them.
func (s *sender) changed() []string {
	var keys []string
	for more := true; more; {
		some := s.table.Changed(changedAtOnce)
		keys, more = append(keys, some...), len(some) == changedAtOnce
	}
	if len(keys) > 0 {
		if s.sweep.changed(keys) {
			s.disk.metaChanged()
		}
		s.m.out.Add(KeysChanged{Group: s.index, Keys: keys})
	}
	return keys
}

// meta returns what is to be written beside the entries, without the number of the batch.
func (s *sender) meta() Meta {
	mark := s.sweep.mark
	mark.Late = slices.Sorted(maps.Keys(s.sweep.late))
	m := Meta{
		Register: s.reg, Caught: s.caught, Promised: s.change.promised, Accepted: s.change.accepted, Value: s.change.value,
		Confirmed: mark, Shown: s.storeCheck.remembered(), Behind: s.behindStore(), Restarts: s.storeCheck.restarts,
	}
	if s.storeCheck.participation == older {
		m.Older = s.self
	}
	return m
}

// final returns the last batch of a node that ends, with everything in it that may be missing in the store.
func (s *sender) final() WriteBatch {
	m := s.meta()
	m.Behind = s.storeCheck.unclean
	return s.disk.final(m, s.storeCheck.participation)
}

// send sends a message to a peer, with the register unless the peer is known to know it.
func (s *sender) send(p *peer, body any) {
	if s.reg == nil && !s.m.counted(p.node, s.cfg.Role) {
		// A member that is not asked when a register is created must not be told that there is none.
		return
	}
	e := Envelope{
		Group: s.index, From: s.envelopeID(), Suspended: !s.m.mayHost(), Restarts: s.storeCheck.restarts,
		Agrees: s.cfg.Durable && p.compared && p.lostBatch == 0, Body: body,
	}
	if s.reg != nil {
		e.Lineage, e.Gen, e.Sealed, e.Caught = s.reg.Lineage, s.reg.Gen, s.sealed, s.caught && !s.apart()
		if s.misses(p) {
			e.Register, p.registerSent.gen, p.registerSent.at = s.reg, s.reg.Gen, s.m.now.Mono
		}
	}
	if !s.disk.used {
		s.m.out.Add(machine.Send{To: p.node, Lane: laneOf(body), Message: e})
		return
	}
	e.Apart, e.Older, e.Unsure = s.apart(), s.storeCheck.participation == older, s.storeCheck.unclean
	p.shown = s.disk.send(p.node, e, s.storeCheck.participation, s.changed())
}

// answer answers a message, and sends its sender the entries that it was found to lack.
func (s *sender) answer(p *peer, answer any, lacked []table.Entry) {
	s.send(p, answer)
	s.give(p, lacked)
}

// give sends entries to a replica, each key once, in messages of a bounded size.
func (s *sender) give(p *peer, entries []table.Entry) {
	given := make(map[string]bool, len(entries))
	entries = slices.DeleteFunc(entries, func(e table.Entry) bool {
		again := given[e.Key]
		given[e.Key] = true
		return again
	})
	for part := range chunks(entries, s.m.cfg.Bounds.MessageBytes) {
		s.send(p, Put{Stamp: s.gen(), Entries: part})
	}
}

// done ends an operation.
func (s *sender) done(d Done) {
	if !s.disk.used {
		s.m.out.Add(d)
		return
	}
	s.disk.answer(d, s.storeCheck.participation, s.changed())
}

// sendRegister sends a peer the present register, unless that was sent within the last tick.
func (s *sender) sendRegister(p *peer) {
	if p.registerSent.gen == s.gen() && s.m.now.Mono.Sub(p.registerSent.at) < s.m.cfg.Timing.Tick {
		return
	}
	s.send(p, Hello{})
}

// greet tells every replica of the sets, and the leader, of a new generation or of a change of this replica's state.
func (s *sender) greet() {
	for _, p := range s.sorted() {
		if s.reg.In(p.id) || p.node == s.leader() {
			s.send(p, Hello{})
		}
	}
}

// hello asks members for their replicas if these are not known; tells the leader how far this replica has come while
// the register changes, and its id while it is in no set; and asks peers that may have missed the register.
func (s *sender) hello(taken uint64) {
	for _, of := range s.m.replicas(s.cfg.Role) {
		p := s.nodes[of.Node]
		switch {
		case p == nil:
		case p.id == 0:
			s.send(p, Hello{Ask: true})
		case of.Node == s.leader() && (s.reg == nil || s.reg.Phase == PhaseJoint || !s.sealed || s.member() && !s.reg.In(s.self)):
			s.send(p, Hello{Taken: taken})
		case s.reg != nil && s.misses(p) && (s.reg.In(p.id) || s.leads()):
			s.send(p, Hello{Ask: true})
		}
	}
}

// attempting reports whether an attempt to change the register is under way, and sends what that repeats.
func (s *sender) attempting() bool {
	busy, again := s.change.busy()
	s.post(again...)
	return busy
}

// laneOf returns the lane of a message. Passes, whose messages may be large, have a lane on which no other message
// waits.
func laneOf(body any) machine.Lane {
	switch body.(type) {
	case Compare, Groups, AskBuckets, BucketHashes, Pull, PullReply:
		return machine.LaneBulk
	default:
		return machine.LaneMessage
	}
}
