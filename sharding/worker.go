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
func (r *router) work(sl *slot, e *protocol.Entity, op protocol.Op) {
	s, j := r.system, job{r, sl, e, op}
	if one := s.pool.take(); one != nil {
		one.jobs <- j
		return
	}
	// Owned by the system: ends when the entity is idle or stopped, and no other job
	// has come for a while; AwaitEnd waits for it.
	s.workers.Go(func() { s.runJobs(j) })
}

// runJobs does one job after the other.
func (s *System) runJobs(j job) {
	var ctx *Context
	defer func() {
		if j.op == 0 {
			return
		}
		// The entity ended this goroutine, by runtime.Goexit. What it was about
		// has failed, and another goroutine goes on.
		if op := j.r.deserted(ctx, j.sl, j.e, j.op); op != 0 {
			j.r.work(j.sl, j.e, op)
		}
	}()
	var one *worker
	for more := true; more; {
		ctx = &Context{router: j.r, entity: j.e}
		for j.op != 0 {
			ctx.reply, ctx.stop = nil, StopNone
			j.op = j.r.perform(ctx, j.sl, j.e, j.op)
		}
		ctx, j = nil, job{} // The memory of the finished job may go while this waits.
		j, more = s.pool.wait(&one)
	}
}

// perform does one thing to an entity and returns the next.
func (r *router) perform(ctx *Context, sl *slot, e *protocol.Entity, op protocol.Op) protocol.Op {
	now := ctx.now
	ctx.now = 0
	switch op {
	case protocol.OpStart:
		return r.started(sl, e, r.startEntity(ctx, e))
	case protocol.OpStop:
		why, begins := r.beginStop(sl, e)
		if !begins {
			return 0
		}
		r.endTimers(sl, e)
		ctx.stop = why
		r.stopEntity(ctx, e)
		return r.stopped(sl, e)
	default:
		if now == 0 {
			now = r.system.clock.Instant()
		}
		return r.runEntity(ctx, sl, e, now)
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
func (r *router) deserted(ctx *Context, sl *slot, e *protocol.Entity, op protocol.Op) protocol.Op {
	r.system.counters.panics.Add(1)
	r.system.log.Error("entity ended its goroutine", "kind", r.name, "entity", e.ID())
	switch op {
	case protocol.OpStart:
		return r.started(sl, e, errDeserted)
	case protocol.OpStop:
		return r.stopped(sl, e)
	default:
		return r.done(ctx, sl, e, failed(errDeserted))
	}
}

var errDeserted = errors.New("it ended its goroutine")

func (r *router) started(sl *slot, e *protocol.Entity, err error) protocol.Op {
	now := r.system.clock.Instant()
	if err == nil {
		return r.after(sl, e, func(out *protocol.Actions) { sl.cell.Started(now, e, true, out) })
	}
	r.endTimers(sl, e)
	return r.after(sl, e, func(out *protocol.Actions) { sl.cell.StartFailed(now, e, detailOf(err), out) })
}

// beginStop returns why an entity is stopped; false if it must not be now.
func (r *router) beginStop(sl *slot, e *protocol.Entity) (why StopReason, begins bool) {
	now := r.system.clock.Instant()
	held := r.system.standing.HeldAt(now)
	var reason protocol.StopReason
	r.after(sl, e, func(out *protocol.Actions) { reason, begins = sl.cell.BeginStop(now, e, held, out) })
	return StopReason(reason), begins
}

func (r *router) stopped(sl *slot, e *protocol.Entity) protocol.Op {
	return r.after(sl, e, func(out *protocol.Actions) { sl.cell.Stopped(r.system.clock.Instant(), e, out) })
}

// done gives the outcome of a message. A reply is withheld when the clock shows
// no standing any more. What the clock shows is good for the message that begins
// next as well: it begins at once.
func (r *router) done(ctx *Context, sl *slot, e *protocol.Entity, result protocol.Result) protocol.Op {
	now := r.system.clock.Instant()
	ctx.now = now
	result.Withhold = !r.system.standing.HeldAt(now)
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.free.keep(&r.system.messages, sl.cell.Ran(e, ctx.ran, &sl.out))
	sl.cell.Done(now, e, result, &sl.out)
	op := r.carry(sl, e)
	if ctx.ahead, ctx.ran = nil, 0; op == protocol.OpRun {
		ctx.ahead, ctx.ends = sl.cell.Ahead(e, runMost), sl.ends.Load()
	}
	return op
}

// after tells the cell what was done.
func (r *router) after(sl *slot, e *protocol.Entity, f func(out *protocol.Actions)) protocol.Op {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	f(&sl.out)
	return r.carry(sl, e)
}

// runEntity lets an entity handle its message, unless the node's clock shows
// no standing.
func (r *router) runEntity(ctx *Context, sl *slot, e *protocol.Entity, now machine.Instant) protocol.Op {
	if !r.system.standing.HeldAt(now) {
		return r.after(sl, e, func(out *protocol.Actions) { sl.cell.Postpone(now, e, out) })
	}
	if e.Message().Expired(now) {
		return r.after(sl, e, func(out *protocol.Actions) { sl.cell.Lapse(now, e, out) })
	}
	result := r.handle(ctx, e, e.Message())
	for m := ctx.ahead; m != nil && !result.Failed; m = m.Next() {
		begins := r.system.clock.Instant()
		if begins.Sub(now) > runLong || !r.system.standing.HeldAt(begins) || sl.ends.Load() != ctx.ends {
			break
		}
		ctx.reply = nil
		ctx.ran++ // Before the entity has it, since it may not come back from it.
		result = r.handle(ctx, e, m)
	}
	return r.done(ctx, sl, e, result)
}

// handle lets an entity handle its message and says what came of it. A message
// that cannot be decoded is the sender's fault: the entity does not see it, and
// stays. So does one whose reply cannot be encoded.
func (r *router) handle(ctx *Context, e *protocol.Entity, m *protocol.Message) protocol.Result {
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
func (r *router) decode(e *protocol.Entity, m *protocol.Message) (err error) {
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
func (r *router) hand(ctx *Context, e *protocol.Entity, m *protocol.Message) (err error) {
	defer r.recovered(e, &err)
	return frozen(r.entity.receive(ctx, instanceOf(e), m.Value))
}

// answer makes the reply to a message, encoded when the asker is elsewhere.
func (r *router) answer(value any, e *protocol.Entity, m *protocol.Message) *protocol.Reply {
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

func (r *router) encodeReply(e *protocol.Entity, value any) (payload []byte, err error) {
	defer r.recovered(e, &err)
	payload, err = r.codec.Append(nil, value)
	return payload, frozen(err)
}

// startEntity creates an entity and starts it.
func (r *router) startEntity(ctx *Context, e *protocol.Entity) (err error) {
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
func (r *router) stopEntity(ctx *Context, e *protocol.Entity) {
	var err error
	defer ctx.returned()
	defer r.recovered(e, &err)
	if s, ok := instanceOf(e).(Stopper); ok {
		s.Stop(ctx)
	}
}

// recovered turns a panic of an entity into an error: it ends the entity, never
// the process.
func (r *router) recovered(e *protocol.Entity, err *error) {
	if v := recover(); v != nil {
		r.system.counters.panics.Add(1)
		r.system.log.Error("entity panicked", "kind", r.name, "entity", e.ID(), "panic", v, "stack", string(debug.Stack()))
		*err = fmt.Errorf("sharding: panic: %v", v)
	}
}
