// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/machine"
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
	case ReleaseHosting:
		s.releaseHosting(now, in, out)
	case Suspend:
		s.suspended = true
	case Unsuspend:
		s.unsuspend(now, out)
	case Abandon:
		s.abandon(now, out)
	}
}

func (s *Shard) setRoute(now machine.Instant, r SetRoute, out *Actions) {
	if !s.route.Epoch.Less(r.Epoch) {
		return
	}
	s.rehome(r.Home)
	s.route, s.asked, s.blocked, s.since = r, false, false, now
	s.openBelow(r.Epoch, out)
	if s.state != hostNone && r.Home != s.cfg.Self && s.epoch.Less(r.Epoch) {
		s.evict(now, out)
	}
	s.rebase(now, r.Base, out)
	for m := s.window.head; m != nil; m = m.next {
		m.Route = r.Epoch
	}
	s.cursor = s.window.head
	s.pump(now, out)
	s.retransit(now, out)
}

// rebase begins all streams anew when the shard's host has died. What has left
// this node may or may not have been processed; what has not is numbered anew, in
// order. A copy that leaves later does no harm: before a host is taken for dead its
// fence has passed, so that it begins nothing any more.
func (s *Shard) rebase(now machine.Instant, base Epoch, out *Actions) {
	if !s.base.Less(base) {
		return
	}
	if !s.base.IsZero() {
		out.add(Action{Op: OpReset})
	}
	s.base, s.next, s.cursor, s.former = base, 0, nil, nil
	old := s.window
	s.window = queue{}
	for m := old.pop(); m != nil; m = old.pop() {
		if s.left(m) {
			out.add(Action{Op: OpFail, Message: m, Code: CodeUnknownOutcome})
			continue
		}
		m.place = 0
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
	s.rehome(s.cfg.Self)
	s.route = SetRoute{Home: s.cfg.Self, Epoch: h.Epoch, Base: h.Base}
	s.rebase(now, h.Base, out)
	s.forget(out)
	for _, p := range h.Positions {
		s.stream(p.Origin).last = p.Seq
	}
	s.state, s.epoch, s.asked, s.blocked, s.since = hostServing, h.Epoch, false, false, now
	s.openBelow(h.Epoch, out)
	s.serve(now, out)
}

// serve delivers everything that waited for this node to be the home.
func (s *Shard) serve(now machine.Instant, out *Actions) {
	s.cursor = s.window.head
	s.pump(now, out)
	s.line.dismiss(out) // Messages of this node go straight into mailboxes now.
	s.retransit(now, out)
}

func (s *Shard) stopHosting(now machine.Instant, h StopHosting, out *Actions) {
	if s.state != hostServing || s.epoch != h.Epoch {
		return
	}
	s.state, s.since, s.leaving = hostStopping, now, h.Leaving
	for _, in := range s.sortedStreams() {
		for m := in.waiting.pop(); m != nil; m = in.waiting.pop() {
			s.keep(now, m, out)
		}
		in.needed = 0
	}
	for e := s.first; e != nil; {
		next := e.next
		s.disband(e, out)
		if _, idle := e.Idle(); idle && e.withheld == nil {
			s.stop(now, e, out)
		}
		s.removeIdle(e)
		e = next
	}
	s.checkHalted(now, out)
}

func (s *Shard) resumeHosting(now machine.Instant, h ResumeHosting, out *Actions) {
	if s.state != hostStopping || s.epoch != h.Epoch {
		return
	}
	s.state, s.since = hostServing, now
	s.serve(now, out)
}

// releaseHosting ends the hosting although entities have not stopped. What they
// are at may or may not come to its end; what waited behind it did not begin.
func (s *Shard) releaseHosting(now machine.Instant, h ReleaseHosting, out *Actions) {
	if s.state != hostStopping || s.epoch != h.Epoch {
		return
	}
	for e := s.first; e != nil; {
		next := e.next
		for m := e.mailbox.pop(); m != nil; m = e.mailbox.pop() {
			s.refuse(m, CodeNotDelivered, out)
		}
		s.disband(e, out)
		s.release(now, e, out)
		e = next
	}
	s.checkHalted(now, out)
}

// release leaves e behind.
func (s *Shard) release(now machine.Instant, e *Entity, out *Actions) {
	if e.withheld != nil {
		s.reply(e.withheld.to, &Reply{Correlation: e.withheld.reply.Correlation, Code: CodeUnknownOutcome, Detail: leftBehind}, out)
		e.withheld = nil
	}
	s.remove(e)
	if !e.hasInstance() {
		return
	}
	e.released = true
	s.released = append(s.released, e)
	s.giveUpAhead(e, out)
	if e.deferred || e.state == entityActive && e.current == nil {
		s.stop(now, e, out) // It waited for standing, and is not stuck.
		return
	}
	if m := e.current; m != nil && !m.Own {
		s.reply(m.Origin, &Reply{Correlation: m.Correlation, Code: CodeUnknownOutcome, Detail: leftBehind}, out)
	}
	if !e.stuck {
		e.stuck = true
		s.stuck++
		out.entity(OpStuck, e)
	}
}

// leftBehind is what senders hear whose messages an entity was at.
const leftBehind = "the entity did not return, and its shard went on without it"

// checkHalted ends the hosting once the last entity is gone.
func (s *Shard) checkHalted(now machine.Instant, out *Actions) {
	if s.state != hostStopping || s.first != nil || s.abandoned {
		return
	}
	s.Acks(out)
	s.state, s.since = hostNone, now
	halted := ShardHalted{Epoch: s.epoch, Base: s.base, Positions: s.positions()}
	clear(s.streams)
	s.lastUsed = nil
	out.add(Action{Op: OpEnd})
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
func (s *Shard) evict(now machine.Instant, out *Actions) {
	s.state = hostNone
	s.discard(now, CodeNotDelivered, out)
	out.add(Action{Op: OpEnd})
}

// discard refuses all mailboxes and stops all instances. Those that are at
// something are stopped when they return from it; until then nothing starts in
// their place.
func (s *Shard) discard(now machine.Instant, code Code, out *Actions) {
	for e := s.first; e != nil; {
		next := e.next
		for m := e.mailbox.pop(); m != nil; m = e.mailbox.pop() {
			s.refuse(m, code, out)
		}
		s.disband(e, out)
		e.withheld = nil
		switch {
		case !e.hasInstance():
			s.remove(e)
		case e.deferred || e.state == entityActive && e.current == nil:
			e.stale = true
			s.stop(now, e, out)
		default:
			e.stale = true
		}
		e = next
	}
}

func (s *Shard) unsuspend(now machine.Instant, out *Actions) {
	s.suspended, s.postponed = false, false
	s.restart(now, out)
}

// abandon ends everything on this node: it was downed or it has left.
func (s *Shard) abandon(now machine.Instant, out *Actions) {
	s.abandoned = true
	s.discard(now, CodeNotDelivered, out)
	for m := s.window.pop(); m != nil; m = s.window.pop() {
		code := CodeNotDelivered
		if m.place != 0 {
			code = CodeUnknownOutcome // What is queued may still leave: lanes linger.
		}
		out.add(Action{Op: OpFail, Message: m, Code: code})
	}
	s.cursor = nil
	for m := s.transit.pop(); m != nil; m = s.transit.pop() {
		out.drop(m, DropStopped)
	}
	s.forget(out)
	for _, entity := range s.heldEntities() {
		s.open(entity, s.holds[entity], out)
	}
	s.line.dismiss(out)
}
