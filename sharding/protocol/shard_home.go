// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/machine"
)

// Apply takes an input from this node's [Control].
func (s *Shard) Apply(now machine.Instant, in ShardInput, out *Actions) {
	if s.abandoned {
		return
	}
	switch in := in.(type) {
	case SetRoute:
		s.setRoute(now, in, out)
	case StartHosting:
		s.startHosting(now, in, out)
	case StopHosting:
		s.stopHosting(now, in, out)
	case ResumeHosting:
		s.resumeHosting(now, in, out)
	case Suspend:
		s.suspended = true
	case Unsuspend:
		s.unsuspend(now, out)
	case Abandon:
		s.abandon(out)
	}
}

func (s *Shard) setRoute(now machine.Instant, r SetRoute, out *Actions) {
	if !s.route.Epoch.Less(r.Epoch) {
		return
	}
	s.route, s.asked, s.blocked = r, false, false
	if s.state != hostNone && r.Home != s.cfg.Self && s.epoch.Less(r.Epoch) {
		s.evict(out)
	}
	s.rebase(now, r.Base, out)
	s.cursor = s.window.head
	s.pump(now, out)
	s.retransit(now, out)
}

// rebase begins all streams anew when the shard's host has died. What was sent
// may or may not have been processed; what was not is numbered anew, in order.
func (s *Shard) rebase(now machine.Instant, base Epoch, out *Actions) {
	if !s.base.Less(base) {
		return
	}
	if !s.base.IsZero() {
		out.add(Action{Op: OpReset})
	}
	s.base, s.next, s.cursor = base, 0, nil
	old := s.window
	s.window = queue{}
	for m := old.pop(); m != nil; m = old.pop() {
		if m.sends > 0 {
			out.add(Action{Op: OpFail, Message: m, Code: CodeUnknownOutcome})
			continue
		}
		s.next++
		m.Seq, m.Base = s.next, base
		s.window.push(m)
	}
	s.cursor = s.window.head
	s.room(now, out)
	s.forget(out)
}

// forget drops the inbound streams.
func (s *Shard) forget(out *Actions) {
	for _, in := range s.sortedStreams() {
		for m := in.waiting.pop(); m != nil; m = in.waiting.pop() {
			out.drop(m, DropOldStream)
		}
	}
	clear(s.streams)
	s.dirty, s.lastUsed = s.dirty[:0], nil
}

// sortedStreams returns the inbound streams ordered by origin.
func (s *Shard) sortedStreams() []*stream {
	all := make([]*stream, 0, len(s.streams))
	for _, in := range s.streams { //quorate:unordered sorted below
		all = append(all, in)
	}
	slices.SortFunc(all, func(a, b *stream) int { return a.origin.Compare(b.origin) })
	return all
}

func (s *Shard) startHosting(now machine.Instant, h StartHosting, out *Actions) {
	if s.state != hostNone {
		// The node hosts the shard already, under a lower epoch; what it knows of
		// the streams is newer than what travelled.
		s.epoch = maxEpoch(s.epoch, h.Epoch)
		return
	}
	if h.Epoch.Less(s.route.Epoch) || h.Base.Less(s.base) {
		return
	}
	s.route = SetRoute{Home: s.cfg.Self, Epoch: h.Epoch, Base: h.Base}
	s.rebase(now, h.Base, out)
	s.forget(out)
	for _, p := range h.Positions {
		s.stream(p.Origin).last = p.Seq
	}
	s.state, s.epoch, s.asked, s.blocked = hostServing, h.Epoch, false, false
	s.serve(now, out)
}

// serve delivers everything that waited for this node to be the home.
func (s *Shard) serve(now machine.Instant, out *Actions) {
	s.cursor = s.window.head
	s.pump(now, out)
	s.retransit(now, out)
}

func (s *Shard) stopHosting(now machine.Instant, h StopHosting, out *Actions) {
	if s.state != hostServing || s.epoch != h.Epoch {
		return
	}
	s.state = hostStopping
	for _, in := range s.sortedStreams() {
		for m := in.waiting.pop(); m != nil; m = in.waiting.pop() {
			s.keep(now, m, out)
		}
		in.needed = 0
	}
	for e := s.first; e != nil; {
		next := e.next
		switch {
		case e.state == entityFailed:
			s.remove(e)
		case e.state == entityActive && e.current == nil && e.mailbox.n == 0 && e.withheld == nil:
			s.stop(e, out)
		}
		e = next
	}
	s.checkHalted(now, out)
}

func (s *Shard) resumeHosting(now machine.Instant, h ResumeHosting, out *Actions) {
	if s.state != hostStopping || s.epoch != h.Epoch {
		return
	}
	s.state = hostServing
	s.serve(now, out)
}

// checkHalted ends the hosting once the last entity is gone.
func (s *Shard) checkHalted(_ machine.Instant, out *Actions) {
	if s.state != hostStopping || s.first != nil || s.abandoned {
		return
	}
	s.Acks(out)
	s.state = hostNone
	halted := ShardHalted{Epoch: s.epoch, Base: s.base, Positions: s.positions()}
	clear(s.streams)
	s.lastUsed = nil
	out.add(Action{Op: OpEvent, Event: halted})
}

// positions returns how far each stream was delivered, sorted by origin.
func (s *Shard) positions() []Position {
	var all []Position
	for _, in := range s.sortedStreams() {
		if in.last > 0 {
			all = append(all, Position{Origin: in.origin, Seq: in.last})
		}
	}
	return all
}

// evict ends the hosting at once, since the map says that another node hosts the
// shard under a higher epoch. This happens only when a coordinator took this
// node for gone; what was not processed is given back to its senders.
func (s *Shard) evict(out *Actions) {
	s.state = hostNone
	s.discard(CodeNotDelivered, out)
}

// discard refuses all mailboxes and stops all instances.
func (s *Shard) discard(code Code, out *Actions) {
	for e := s.first; e != nil; {
		next := e.next
		for m := e.mailbox.pop(); m != nil; m = e.mailbox.pop() {
			s.refuse(m, code, out)
		}
		e.withheld, e.owed = nil, gossip.NodeID{}
		switch {
		case e.state == entityWaiting || e.state == entityFailed:
			s.remove(e)
		case e.state == entityActive && e.current == nil:
			s.stop(e, out)
		default:
			e.passivate = true
		}
		e = next
	}
}

func (s *Shard) unsuspend(now machine.Instant, out *Actions) {
	s.suspended, s.postponed = false, false
	s.restart(now, out)
}

// abandon ends everything on this node: it was downed or it has left.
func (s *Shard) abandon(out *Actions) {
	s.abandoned = true
	s.discard(CodeNotDelivered, out)
	for m := s.window.pop(); m != nil; m = s.window.pop() {
		code := CodeNotDelivered
		if m.sends > 0 {
			code = CodeUnknownOutcome
		}
		out.add(Action{Op: OpFail, Message: m, Code: code})
	}
	s.cursor = nil
	for m := s.transit.pop(); m != nil; m = s.transit.pop() {
		out.drop(m, DropStopped)
	}
	s.forget(out)
	if s.full {
		s.full = false
		out.add(Action{Op: OpRoom})
	}
}
