// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The methods stand in the order of a life: started or not, at work, postponed or lapsed, told to be passive or
// reminded of something, stopped. Most lead back to advance; a run is in runs.go, and why one stops in stop.go.

// Instances has the methods by which the runtime says what became of an instance that the cell had started, run or
// stopped, by [OpStart], [OpRun] and [OpStop].
type Instances struct {
	*entityTable
	cell *Cell
}

// Instances returns the methods about the instances of the entities of the cell.
func (c *Cell) Instances() Instances { return Instances{&c.entities, c} }

// Started says that the instance of e was started, or could not be.
func (r Instances) Started(now machine.Instant, e *Entity, ok bool, out *Actions) {
	if !ok {
		r.StartFailed(now, e, "", out)
		return
	}
	if e.state != entityStarting {
		return
	}
	r.returned(e, out)
	e.state, e.at = entityActive, now
	if r.place.isOver() || e.Ended() {
		r.stop(now, e, out)
		return
	}
	r.advance(now, e, out)
}

// StartFailed says that the instance of e could not be started, and why.
func (r Instances) StartFailed(now machine.Instant, e *Entity, why string, out *Actions) {
	if e.state != entityStarting {
		return
	}
	r.returned(e, out)
	r.counts.StartFailed++
	e.unset(isPassivate | isHeld)
	e.Value = nil
	r.limiter.leave(e)
	if !e.Ended() {
		e.failures = min(e.failures+1, 16)
		r.rest(now, e, r.cfg.backoff(e.failures), why, out)
	}
	r.gone(now, e, out)
	r.cell.checkHalted(now, out)
}

// Postpone gives back the message of an OpRun whose processing did not begin,
// since the node's clock showed no standing. The processing begins after [protocol.Unsuspend] or,
// should the clock show standing again, after a short time.
func (r Instances) Postpone(now machine.Instant, e *Entity, out *Actions) {
	if !e.atWork() {
		return
	}
	r.Ran(e, 0, out) // Nothing of a run began.
	switch {
	case e.is(isReleased):
		out.freeMail(e.mailbox.pop()) // The sender was told when the entity was left behind.
		r.stop(now, e, out)
	case r.place.isOver() || e.is(isStale):
		// The hosting has ended since OpRun: no standing brings the message to its entity.
		r.refuseMail(e, e.mailbox.pop(), protocol.CodeNotDelivered, out)
		r.stop(now, e, out)
	default:
		e.mailbox.out = 0
		r.alarm.retrySoon(now, out)
	}
}

// Lapse gives back the message of an OpRun whose deadline had passed before its
// processing began. The next message may begin at once.
func (r Instances) Lapse(now machine.Instant, e *Entity, out *Actions) {
	if !e.atWork() {
		return
	}
	if r.place.isOver() || e.Ended() {
		r.Postpone(now, e, out)
		return
	}
	e.at = now
	r.refuseMail(e, e.mailbox.pop(), protocol.CodeExpired, out)
	r.advance(now, e, out)
}

// Done says that e has processed its message. The next message may begin at once.
func (r Instances) Done(now machine.Instant, e *Entity, res Result, out *Actions) {
	if !e.atWork() {
		return
	}
	m := e.mailbox.pop()
	if !m.Own() {
		r.counts.Handled++
	}
	replied := false
	e.at = now
	r.returned(e, out)
	if res.Reply != nil && !e.is(isReleased) && !m.Own() {
		res.Reply.Correlation = m.Correlation()
		switch {
		case !r.place.isSuspended() && !res.Withhold:
			r.place.reply(m.Origin(r.cfg.Self), res.Reply, out)
			replied = true
		case !e.is(isStale):
			e.withhold(res.Reply, m.Origin(r.cfg.Self))
		}
	}
	if !replied || m.Message() != nil { // An ask that has its reply has ended.
		out.freeMail(m)
	}
	if res.Failed {
		r.fail(now, e, res.Reason, out)
		return
	}
	e.failures = 0
	switch {
	case r.place.isOver():
		e.dropReply()
		r.stop(now, e, out)
	case e.Ended():
		r.stop(now, e, out)
	case e.Withholds() && !r.place.isSuspended():
		r.alarm.retrySoon(now, out)
	default:
		r.advance(now, e, out)
	}
}

// Passivate stops the instance of e once its mailbox is empty. A message that
// comes later starts a new instance; no message is lost.
func (r Instances) Passivate(now machine.Instant, e *Entity, out *Actions) {
	switch {
	case e.state == entityStarting:
		e.set(isPassivate)
	case e.state != entityActive:
	default:
		e.set(isPassivate)
		if e.mailbox.n == 0 && !e.Withholds() {
			r.stop(now, e, out)
		}
	}
}

// Remind puts a message of an instance to itself into its mailbox. It does nothing
// when the instance is ending, whose timers end with it. Such messages are taken by a full
// mailbox too, since their number is bounded by the number of timers.
func (r Instances) Remind(now machine.Instant, e *Entity, m *Message, out *Actions) {
	if !e.Live() || r.place.isOver() {
		return
	}
	m.Origin, m.Own = r.cfg.Self, true
	e.mailbox.push(MailOf(m.Value, m))
	r.advance(now, e, out)
}

// Stopped says that the instance of e has stopped.
func (r Instances) Stopped(now machine.Instant, e *Entity, out *Actions) {
	if e.state != entityStopping {
		return
	}
	r.returned(e, out)
	e.Value = nil
	if e.failure() == nil && r.place.serves() && !r.place.isOver() && !e.Ended() {
		r.counts.Passivated[e.Cause()]++ // The instance stops, has not failed, and its shard stays.
	}
	r.remembering.ended(e)
	if failure := e.failure(); failure != nil {
		why := *failure
		e.blame(nil)
		switch {
		case e.Ended() || r.place.isOver():
		case r.cfg.OnFailure == StopOnFailure && !r.permanent(e):
			r.rest(now, e, 0, why, out)
		case e.failures > 1:
			r.rest(now, e, r.cfg.backoff(e.failures-1), why, out)
		default:
			e.state, e.at, e.Value = entityFailed, now, reason(why)
		}
	}
	r.gone(now, e, out)
	r.cell.checkHalted(now, out)
}
