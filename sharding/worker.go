// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// work runs an entity on a goroutine of its own until it has nothing more to
// do. The cell's machine sees to it that an entity has one such goroutine at a
// time.
func (r *region) work(c *cell, e *protocol.Entity, op protocol.Op) {
	s, j := r.system, job{r, c, e, op}
	if one := s.crew.take(); one != nil {
		one.jobs <- j
		return
	}
	// Owned by the system: ends when the entity is idle or stopped, and no other job
	// has come for a while; AwaitEnd waits for it.
	s.workers.Go(func() { s.labour(j) })
}

// labour does one job after the other.
func (s *System) labour(j job) {
	var ctx *Context
	defer func() {
		if j.op == 0 {
			return
		}
		// The entity ended this goroutine, by runtime.Goexit. What it was about
		// has failed, and another goroutine goes on.
		if op := j.r.deserted(ctx, j.c, j.e, j.op); op != 0 {
			j.r.work(j.c, j.e, op)
		}
	}()
	var one *worker
	for more := true; more; {
		ctx = &Context{region: j.r, entity: j.e}
		for j.op != 0 {
			ctx.reply, ctx.stop = nil, StopNone
			j.op = j.r.perform(ctx, j.c, j.e, j.op)
		}
		ctx, j = nil, job{} // What it was about may go while this waits.
		j, more = s.crew.wait(&one)
	}
}

// perform does one thing to an entity and returns the next.
func (r *region) perform(ctx *Context, c *cell, e *protocol.Entity, op protocol.Op) protocol.Op {
	now := ctx.now
	ctx.now = 0
	switch op {
	case protocol.OpStart:
		return r.started(c, e, r.startEntity(ctx, e))
	case protocol.OpStop:
		why, begins := r.beginStop(c, e)
		if !begins {
			return 0
		}
		r.endTimers(c, e)
		ctx.stop = why
		r.stopEntity(ctx, e)
		return r.stopped(c, e)
	default:
		if now == 0 {
			now = r.system.clock.Instant()
		}
		return r.runEntity(ctx, c, e, now)
	}
}

// runMost bounds the messages of one run, and runLong the time after which a run
// begins no further message: what is handed out has to be taken back first when
// something else is to happen to the entity.
const (
	runMost = 64
	runLong = time.Millisecond
)

// deserted ends what an entity did not return from.
func (r *region) deserted(ctx *Context, c *cell, e *protocol.Entity, op protocol.Op) protocol.Op {
	r.system.counters.panics.Add(1)
	r.system.log.Error("entity ended its goroutine", "kind", r.name, "entity", e.ID())
	switch op {
	case protocol.OpStart:
		return r.started(c, e, errDeserted)
	case protocol.OpStop:
		return r.stopped(c, e)
	default:
		return r.done(ctx, c, e, failed(errDeserted))
	}
}

var errDeserted = errors.New("it ended its goroutine")

func (r *region) started(c *cell, e *protocol.Entity, err error) protocol.Op {
	now := r.system.clock.Instant()
	if err == nil {
		return r.after(c, e, func(out *protocol.Actions) { c.shard.Started(now, e, true, out) })
	}
	r.endTimers(c, e)
	return r.after(c, e, func(out *protocol.Actions) { c.shard.StartFailed(now, e, detailOf(err), out) })
}

// beginStop returns why an entity is stopped; false if it must not be now.
func (r *region) beginStop(c *cell, e *protocol.Entity) (why StopReason, begins bool) {
	now := r.system.clock.Instant()
	held := r.system.standing.HeldAt(now)
	var reason protocol.StopReason
	r.after(c, e, func(out *protocol.Actions) { reason, begins = c.shard.BeginStop(now, e, held, out) })
	return StopReason(reason), begins
}

func (r *region) stopped(c *cell, e *protocol.Entity) protocol.Op {
	return r.after(c, e, func(out *protocol.Actions) { c.shard.Stopped(r.system.clock.Instant(), e, out) })
}

// done gives the outcome of a message. A reply is withheld when the clock shows
// no standing any more. What the clock shows is good for the message that begins
// next as well: it begins at once.
func (r *region) done(ctx *Context, c *cell, e *protocol.Entity, result protocol.Result) protocol.Op {
	now := r.system.clock.Instant()
	ctx.now = now
	result.Withhold = !r.system.standing.HeldAt(now)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare.keep(&r.system.messages, c.shard.Ran(e, ctx.ran, &c.out))
	c.shard.Done(now, e, result, &c.out)
	op := r.carry(c, e)
	if ctx.ahead, ctx.ran = nil, 0; op == protocol.OpRun {
		ctx.ahead, ctx.ends = c.shard.Ahead(e, runMost), c.ends.Load()
	}
	return op
}

// after tells the cell what was done.
func (r *region) after(c *cell, e *protocol.Entity, f func(out *protocol.Actions)) protocol.Op {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.out)
	return r.carry(c, e)
}

// runEntity lets an entity handle its message, unless the node's clock shows
// no standing.
func (r *region) runEntity(ctx *Context, c *cell, e *protocol.Entity, now machine.Instant) protocol.Op {
	if !r.system.standing.HeldAt(now) {
		return r.after(c, e, func(out *protocol.Actions) { c.shard.Postpone(now, e, out) })
	}
	if e.Message().Expired(now) {
		return r.after(c, e, func(out *protocol.Actions) { c.shard.Lapse(now, e, out) })
	}
	result := r.handle(ctx, e, e.Message())
	for m := ctx.ahead; m != nil && !result.Failed; m = m.Next() {
		begins := r.system.clock.Instant()
		if begins.Sub(now) > runLong || !r.system.standing.HeldAt(begins) || c.ends.Load() != ctx.ends {
			break
		}
		ctx.reply = nil
		ctx.ran++ // Before the entity has it, since it may not come back from it.
		result = r.handle(ctx, e, m)
	}
	return r.done(ctx, c, e, result)
}

// handle lets an entity handle its message and says what came of it. A message
// that cannot be decoded is the sender's fault: the entity does not see it, and
// stays. So does one whose reply cannot be encoded.
func (r *region) handle(ctx *Context, e *protocol.Entity, m *protocol.Message) protocol.Result {
	defer ctx.returned()
	if m.Own {
		return r.timeUp(ctx, e, m)
	}
	if err := r.decode(e, m); err != nil {
		r.system.log.Warn("message cannot be decoded", "kind", r.name, "entity", e.ID(), "error", err)
		return protocol.Result{Reply: failure("the message cannot be decoded: " + err.Error())}
	}
	if err := r.receive(ctx, e, m); err != nil {
		r.system.log.Warn("entity failed", "kind", r.name, "entity", e.ID(), "error", err)
		return failed(err)
	}
	if m.Correlation == 0 {
		m.Value = nil // Nobody looks at it any more.
		return protocol.Result{}
	}
	return protocol.Result{Reply: r.answer(ctx.reply, e, m)}
}

// failed is the outcome of a message at which its entity failed.
func failed(err error) protocol.Result {
	detail := detailOf(err)
	return protocol.Result{Failed: true, Reason: detail, Reply: failure(detail)}
}

// failure is the answer to a message that was not handled as it should be.
func failure(detail string) *protocol.Reply {
	return &protocol.Reply{Code: protocol.CodeEntityFailed, Detail: detail}
}

// detailBytesMax bounds what is told of an entity's error: it may travel with many
// replies, and is kept while the entity rests.
const detailBytesMax = 1000

// frozen turns an error of the program into one that is text and nothing else. Its
// Error method is the program's as well, and may panic: this is called where a panic
// is caught.
func frozen(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(detailOf(err))
}

// detailOf returns the text of an error, shortened where it is too long. Whatever
// the entity put into it, it is text that can travel.
func detailOf(err error) string {
	text := err.Error()
	if len(text) > detailBytesMax {
		text = text[:detailBytesMax] + "..."
	}
	return strings.ToValidUTF8(text, "?")
}

// decode decodes a message that came from another node.
func (r *region) decode(e *protocol.Entity, m *protocol.Message) (err error) {
	defer r.recovered(e, &err)
	if m.Value != nil {
		return nil
	}
	if m.Flags&flagTooLarge != 0 {
		return errTooLarge
	}
	value := r.entity.blank()
	if err := r.codec.Decode(m.Payload, value); err != nil {
		return frozen(err)
	}
	m.Value = value
	return nil
}

var errTooLarge = errors.New("its sender's transport has smaller frames than it needs")

// hand hands a message to its entity.
func (r *region) hand(ctx *Context, e *protocol.Entity, m *protocol.Message) (err error) {
	defer r.recovered(e, &err)
	return frozen(r.entity.receive(ctx, instanceOf(e), m.Value))
}

// answer makes the reply to a message, encoded when the asker is elsewhere.
func (r *region) answer(value any, e *protocol.Entity, m *protocol.Message) *protocol.Reply {
	if value == nil {
		return failure("the entity gave no reply")
	}
	if m.Origin == r.system.self {
		return &protocol.Reply{Value: value}
	}
	payload, err := r.encodeReply(e, value)
	switch {
	case err != nil:
		return failure("the reply cannot be encoded: " + err.Error())
	case len(payload) > r.system.cfg.MaxMessageBytes:
		return failure(fmt.Sprintf("the reply has %d bytes, sharding.max-message-bytes is %d", len(payload), r.system.cfg.MaxMessageBytes))
	}
	return &protocol.Reply{Payload: payload}
}

func (r *region) encodeReply(e *protocol.Entity, value any) (payload []byte, err error) {
	defer r.recovered(e, &err)
	payload, err = r.codec.Append(nil, value)
	return payload, frozen(err)
}

// startEntity creates an entity and starts it.
func (r *region) startEntity(ctx *Context, e *protocol.Entity) (err error) {
	defer func() {
		if err != nil {
			r.system.log.Warn("entity did not start", "kind", r.name, "entity", e.ID(), "error", err)
		}
	}()
	defer ctx.returned()
	defer r.recovered(e, &err)
	entity := r.entity.create(ctx)
	if entity == nil {
		return errors.New("sharding: New returned nil")
	}
	if t, ok := e.Value.(*timed); ok { // New has set timers.
		t.entity = entity
	} else {
		e.Value = entity
	}
	if s, ok := entity.(Starter); ok {
		return frozen(s.Start(ctx))
	}
	return nil
}

// stopEntity stops an entity.
func (r *region) stopEntity(ctx *Context, e *protocol.Entity) {
	var err error
	defer ctx.returned()
	defer r.recovered(e, &err)
	if s, ok := instanceOf(e).(Stopper); ok {
		s.Stop(ctx)
	}
}

// recovered turns a panic of an entity into an error: it ends the entity, never
// the process.
func (r *region) recovered(e *protocol.Entity, err *error) {
	if v := recover(); v != nil {
		r.system.counters.panics.Add(1)
		r.system.log.Error("entity panicked", "kind", r.name, "entity", e.ID(), "panic", v, "stack", string(debug.Stack()))
		*err = fmt.Errorf("sharding: panic: %v", v)
	}
}
