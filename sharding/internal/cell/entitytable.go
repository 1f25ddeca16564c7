// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"slices"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The entities of a host and their mailboxes: enqueue puts a message into the mailbox, and
// creates the record if there is none; advance begins whatever the entity can begin. What
// becomes of each call of an instance is in instances.go, and leads back to advance. discard and
// release end a hosting without waiting.

// entityTable is the part of a cell that runs the entities. Invariants, between calls:
//
//	R1  at most one message of an entity is being processed;
//	R2  each record of the list has an instance, a message, a reply or a sender that waits, or a
//	    failure to remember;
//	R3  when the node does not host, no entity exists but those of an earlier hosting
//	    that have not returned yet, and these begin no message any more;
//	R4  an entity that was left behind is in released until it returns, and nowhere else;
//	R5  while the node serves the shard, each entity that is permanent, and not withheld, has a record, and one
//	    that has neither an instance nor a message waits for standing, or rests and the alarm
//	    is set to the end of its rest; so has each that is remembered, once it has begun here;
//	R6  with a limiter each instance that is live ([Entity.Live]), and whose entity is not permanent,
//	    has a handle, and nothing else has one.
type entityTable struct {
	env
	entityList
	stuck       int       // The number of entities that were reported as stuck and have not returned.
	released    []*Entity // Entities that were left behind and have not returned yet.
	depth       depth     // Of the mailboxes, as the last whole round of Sweep found them.
	seen        depth     // Of the mailboxes that the present round of Sweep has seen so far.
	limiter     limiterClient
	memory      *memory
	remembering rememberedEntities
}

// removeIdle removes the record of an entity unless it is needed: for an instance, for
// messages, for senders that wait, for a failure that is to be remembered, or for the next
// instance of an entity that is permanent.
func (r *entityTable) removeIdle(e *Entity) {
	if r.permanent(e) && r.place.serves() && !r.place.isOver() {
		return
	}
	if !e.hasInstance() && e.mailbox.n == 0 && !e.Withholds() && e.pressure() == nil && (e.state != entityFailed || !r.place.serves() || r.place.isOver()) {
		r.remove(e)
	}
}

// enqueue puts a message of a stream into the mailbox of its entity, or refuses it: nobody
// waits for the reply any more, the entity is failing, or the origin sends on although it is
// held back. The cost is what the message counts in bounded buffers.
func (r *entityTable) enqueue(now machine.Instant, id string, m Mail, cost int, out *Actions) {
	if code := r.admit(now, id, m, cost, out); code != protocol.CodeOK {
		r.refuse(r.whole(id, m), code, out)
	}
}

// admit is enqueue, but that nothing is done with another code than [protocol.CodeOK].
func (r *entityTable) admit(now machine.Instant, id string, m Mail, cost int, out *Actions) protocol.Code {
	if m.Expired(now) {
		return protocol.CodeExpired // No entity is started for a message that nobody waits for.
	}
	e := r.entity(id)
	if e == nil {
		e = r.create(id)
	}
	if e.state == entityFailed && now < e.at {
		return protocol.CodeEntityFailed
	}
	if e.Waiting()+e.kept() >= r.cfg.Mailbox {
		if code := r.overfill(now, e, m.Origin(r.cfg.Self), cost, out); code != protocol.CodeOK {
			return code
		}
	}
	e.mailbox.push(m)
	r.advance(now, e, out)
	return protocol.CodeOK
}

// advance begins whatever the entity can begin now.
func (r *entityTable) advance(now machine.Instant, e *Entity, out *Actions) {
	if r.place.isSuspended() || e.atWork() || e.Withholds() {
		return
	}
	switch e.state {
	case entityWaiting, entityFailed:
		switch {
		case e.mailbox.n > 0:
			if !r.remembering.mustWait(e) {
				r.start(now, e, out)
			}
		case !r.permanent(e) || !r.place.serves() || r.place.isOver():
		case e.state == entityFailed && now < e.at && r.remembering.runs(e):
			r.remembering.rests(e, out)
		case e.state == entityFailed && now < e.at:
			r.alarm.at(e.at, out)
		default:
			r.start(now, e, out)
		}
	case entityActive:
		r.begin(now, e, out)
	}
}

// permanent reports whether e runs whenever this node hosts the shard.
func (r *entityTable) permanent(e *Entity) bool {
	return r.remembering.runs(e) || len(r.cfg.Permanent) > 0 && slices.Contains(r.cfg.Permanent, e.id)
}

// keepUp begins what the entities that are permanent can begin now: the node has begun to serve
// the shard, or the rest of one of them may be over.
func (r *entityTable) keepUp(now machine.Instant, out *Actions) {
	if !r.place.serves() || r.place.isOver() {
		return
	}
	for _, id := range r.cfg.Permanent {
		e := r.entity(id)
		if e == nil && slices.Contains(r.cfg.Withheld, id) {
			continue
		}
		if e == nil {
			e = r.create(id)
		}
		r.advance(now, e, out)
	}
	if r.remembering.due(now, out) {
		for e := range r.all() {
			if e.state == entityFailed {
				r.advance(now, e, out)
			}
		}
	}
}

func (r *entityTable) start(now machine.Instant, e *Entity, out *Actions) {
	r.counts.Started++
	if e.state == entityFailed {
		r.counts.Restarted++
	}
	e.unset(isIdled | isEvicted)
	r.remembering.begins(e)
	e.state, e.epoch, e.at, e.Value = entityStarting, r.place.token(), now, r.memory.take(e.id)
	if r.cfg.Limiter != nil && !r.permanent(e) {
		r.limiter.enter(e)
		e.set(isFresh)
	}
	out.entity(OpStart, e)
}

// begin hands the next message to the instance. Without a message the instance is stopped
// if that is wanted.
func (r *entityTable) begin(now machine.Instant, e *Entity, out *Actions) {
	machine.Assert(!e.Ended(), "an instance begins nothing after its hosting has ended")
	for e.mailbox.n > 0 {
		if e.mailbox.at(0).Expired(now) {
			r.refuseMail(e, e.mailbox.pop(), protocol.CodeExpired, out)
			continue
		}
		e.mailbox.out, e.at = 1, now
		if e.handle != 0 {
			r.limiter.used(e)
		}
		out.entity(OpRun, e)
		r.relieve(e, out)
		return
	}
	r.relieve(e, out)
	if e.is(isPassivate) || r.place.stops() {
		r.stop(now, e, out)
	}
}

// returned notes that e has returned from a call.
func (r *entityTable) returned(e *Entity, out *Actions) {
	if e.stuck() {
		e.stick(false)
		r.stuck--
		out.entity(OpReturned, e)
	}
}

// backoff returns how long an entity rests after a number of failures in a row, at least
// one.
func (cfg *Config) backoff(failures uint8) time.Duration {
	d := cfg.BackoffMin
	for range failures - 1 {
		if d >= cfg.BackoffMax/2 {
			return cfg.BackoffMax // Doubling further could overflow.
		}
		d *= 2
	}
	return min(d, cfg.BackoffMax)
}

// rest fails the messages that wait for e, and those that come during the time d.
func (r *entityTable) rest(now machine.Instant, e *Entity, d time.Duration, why string, out *Actions) {
	e.state, e.at, e.Value = entityFailed, now.Add(d), reason(why)
	r.refuseWaiting(e, protocol.CodeEntityFailed, out)
	r.relieve(e, out)
}

// gone goes on after the instance of e has ended: the record is removed, or a new instance
// is started for messages that wait.
func (r *entityTable) gone(now machine.Instant, e *Entity, out *Actions) {
	if e.is(isReleased) {
		r.released = slices.DeleteFunc(r.released, func(o *Entity) bool { return o == e })
		return
	}
	if e.hasInstance() {
		e.state = entityWaiting
	}
	e.unset(isStale)
	r.removeIdle(e)
	if r.has(e) {
		r.advance(now, e, out)
	}
}

// fail stops an instance that is not usable any more.
func (r *entityTable) fail(now machine.Instant, e *Entity, why string, out *Actions) {
	r.counts.Failed++
	e.failures = min(e.failures+1, 16)
	if r.place.isOver() {
		e.dropReply()
	}
	r.stop(now, e, out)
	if e.Withholds() && !r.place.isSuspended() {
		r.alarm.retrySoon(now, out)
	}
	if !r.place.isOver() && !e.Ended() {
		e.blame(&why)
	}
}

// restart begins the messages, replies and stops that waited for the node's standing.
func (r *entityTable) restart(now machine.Instant, out *Actions) {
	for e := range r.all() {
		r.sendHeldReply(e, out)
		r.stopDeferred(now, e, out)
		r.removeIdle(e)
		if r.has(e) {
			r.advance(now, e, out)
		}
	}
}

// sendHeldReply sends the reply that was held back until the node's standing was proven, if there is one.
func (r *entityTable) sendHeldReply(e *Entity, out *Actions) {
	if reply, to := e.heldReply(); reply != nil {
		r.place.reply(to, reply, out)
		e.dropReply()
	}
}

// discard refuses the messages of all mailboxes and stops all instances. An instance that
// is in a call is stopped when it returns; until then no other instance of the entity
// starts on this node.
func (r *entityTable) discard(now machine.Instant, code protocol.Code, out *Actions) {
	for e := range r.all() {
		r.refuseWaiting(e, code, out)
		r.disband(e, out)
		e.dropReply()
		r.limiter.leave(e)
		switch {
		case !e.hasInstance():
			r.remove(e)
		case e.is(isDeferred) || e.state == entityActive && !e.atWork():
			e.set(isStale)
			r.stop(now, e, out)
		default:
			e.set(isStale)
		}
	}
}

// release leaves e behind: the cell goes on without it, and no answer of it leaves.
func (r *entityTable) release(now machine.Instant, e *Entity, out *Actions) {
	if reply, to := e.heldReply(); reply != nil {
		r.place.reply(to, &protocol.Reply{Correlation: reply.Correlation, Code: protocol.CodeUnknownOutcome, Detail: leftBehind}, out)
		e.dropReply()
	}
	r.remove(e)
	if !e.hasInstance() {
		return
	}
	r.limiter.leave(e)
	e.set(isReleased)
	r.released = append(r.released, e)
	r.giveUpAhead(e, out)
	if e.is(isDeferred) || e.state == entityActive && !e.atWork() {
		r.stop(now, e, out) // The entity waited for standing, and is not stuck.
		return
	}
	if e.atWork() && !e.Mail().Own() {
		m := e.Mail()
		r.place.reply(m.Origin(r.cfg.Self), &protocol.Reply{Correlation: m.Correlation(), Code: protocol.CodeUnknownOutcome, Detail: leftBehind}, out)
	}
	if !e.stuck() {
		e.stick(true)
		r.stuck++
		out.entity(OpStuck, e)
	}
}

// refuse answers a message that no entity will process with an error, and gives the
// message up.
func (r *entityTable) refuse(m *Message, code protocol.Code, out *Actions) {
	if !m.Own {
		r.counts.refused(code)
	}
	detail := ""
	if code == protocol.CodeEntityFailed {
		detail = r.reasonOf(m.Entity)
	}
	switch {
	case m.Own:
		out.free(m)
	case m.Origin == r.cfg.Self && detail == "":
		out.add(Action{Op: OpFail, Message: m, Code: code})
	case m.Origin == r.cfg.Self:
		out.add(Action{Op: OpFail, Message: m, Code: code, Reply: &protocol.Reply{Detail: detail}})
	default:
		r.place.reply(m.Origin, &protocol.Reply{Correlation: m.Correlation, Code: code, Detail: detail}, out)
		out.free(m)
	}
}

// refuseMail is refuse for a message that was in the mailbox of e.
func (r *entityTable) refuseMail(e *Entity, m Mail, code protocol.Code, out *Actions) {
	r.refuse(r.whole(e.id, m), code, out)
}

// refuseWaiting refuses the messages that are not handed out, in their order.
func (r *entityTable) refuseWaiting(e *Entity, code protocol.Code, out *Actions) {
	b := &e.mailbox
	for i := b.out; i < b.n; i++ {
		r.refuseMail(e, *b.at(i), code, out)
	}
	b.truncate()
}

// whole returns the Message of a message to an entity, and makes one of a value alone.
func (r *entityTable) whole(id string, m Mail) *Message {
	if m.Message() != nil {
		return m.Message()
	}
	return &Message{
		Kind: r.cfg.Kind, Shard: r.cfg.Shard, Entity: id, Origin: m.Origin(r.cfg.Self), Value: m.Value,
		Correlation: m.Correlation(), Deadline: m.Deadline(),
	}
}

// reasonOf says why an entity that rests has failed; empty for all others.
func (r *entityTable) reasonOf(id string) string {
	if e := r.entity(id); e != nil && e.state == entityFailed {
		return e.reason()
	}
	return ""
}

// runOut lets the mailboxes run out: lines go, idle instances stop.
func (r *entityTable) runOut(now machine.Instant, out *Actions) {
	for e := range r.all() {
		r.disband(e, out)
		if _, idle := e.Idle(); idle && !e.Withholds() {
			r.stop(now, e, out)
		}
		r.removeIdle(e)
	}
}

// releaseAll leaves behind the entities that have not stopped, and refuses what waits for
// them, which did not begin.
func (r *entityTable) releaseAll(now machine.Instant, out *Actions) {
	for e := range r.all() {
		r.refuseWaiting(e, protocol.CodeNotDelivered, out)
		r.disband(e, out)
		r.release(now, e, out)
	}
}

// retract takes the message of an ask of this node back out of a mailbox. False: it is not there.
func (r *entityTable) retract(now machine.Instant, entity string, correlation uint64, out *Actions) (m *Message, back bool) {
	e := r.entity(entity)
	if e == nil {
		return nil, false
	}
	mail, back := e.mailbox.retract(r.cfg.Self, correlation)
	if !back {
		return nil, false
	}
	r.relieve(e, out)
	r.removeIdle(e)
	if r.has(e) {
		r.advance(now, e, out)
	}
	return mail.Message(), true
}

// vacated goes on when room in a mailbox is not kept any more.
func (r *entityTable) vacated(e *Entity, out *Actions) {
	r.relieve(e, out)
	r.removeIdle(e)
}

// leftBehind is the detail that a sender hears whose message the entity did not finish.
const leftBehind = "the entity did not return, and its shard went on without it"

// describe adds to a snapshot of the cell.
func (r *entityTable) describe(i *Info) {
	i.Entities, i.StuckCount = r.len(), r.stuck
	for _, e := range r.released {
		i.note(e)
	}
	// Mostly no entity is stuck: then the list of entities is not searched.
	for e := range r.all() {
		if len(i.Stuck) >= min(r.stuck, maxStuckNamed) {
			break
		}
		if e.stuck() {
			i.note(e)
		}
	}
}

// tally adds the present numbers to t.
func (r *entityTable) tally(t *Tally) {
	t.Entities += r.len()
	t.Stuck += r.stuck
	t.Mailboxes += r.depth.sum
	t.Deepest = max(t.Deepest, r.depth.most)
}
