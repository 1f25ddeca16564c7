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
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The goroutine that runs an entity: the queue finds one, or starts it, and runJobs does one
// job after the other. A job is one step after the other, by perform: start, handle messages,
// stop. Each ends by telling the cell its outcome, which answers with the next step. Last are
// the calls of the program's code, where panics are caught.

// work has an entity run until it has nothing more to do. The cell sees to it that an
// entity has one job at a time.
func (r *router) work(sl *slot, e *cell.Entity, op cell.Op) {
	r.system.queue.put(job{r: r, sl: sl, e: e, op: op})
}

// startWorker starts a worker with its first job.
func (s *System) startWorker(w *worker, j job) {
	// The goroutine is owned by the system: it ends when no other job has come for a
	// while; AwaitEnd waits for that.
	s.workers.Go(func() { s.runJobs(w, j) })
}

// runJobs does one job after the other.
func (s *System) runJobs(w *worker, j job) {
	defer func() {
		if j.op == 0 {
			return
		}
		// The entity ended this goroutine, by runtime.Goexit. The step has failed, and
		// another goroutine goes on with the next.
		s.queue.leave(w)
		if op := j.r.deserted(j.ctx, j.sl, j.e, j.op); op != 0 {
			j.r.work(j.sl, j.e, op)
		}
	}()
	clock := s.clock.Reader()
	for more := true; more; {
		for j.op != 0 {
			if j.ctx == nil {
				j.ctx = &Context{router: j.r, entity: j.e}
			}
			j.ctx.reply, j.ctx.stop, j.ctx.clock = nil, StopNone, &clock
			j.op = j.r.perform(j.ctx, j.sl, j.e, j.op)
			if j.op == cell.OpRun && j.ctx.yields {
				j.ctx.yields, j.ctx.now, j.ctx.runs = false, machine.Reading{}, 0
				j = s.queue.exchange(w, j)
			}
		}
		j = job{} // The memory of the finished job can be freed while this goroutine waits.
		j, more = s.queue.next(w)
	}
}

// perform takes one step with an entity, that of op, and returns the next step; 0 ends the
// job.
func (r *router) perform(ctx *Context, sl *slot, e *cell.Entity, op cell.Op) cell.Op {
	now := ctx.now
	ctx.now = machine.Reading{}
	switch op {
	case cell.OpStart:
		return r.started(sl, e, r.startEntity(ctx, e))
	case cell.OpStop:
		why, begins := r.beginStop(sl, e)
		if !begins {
			return 0
		}
		r.endTimers(sl, e)
		ctx.stop = why
		r.stopEntity(ctx, e)
		return r.stopped(sl, e)
	default:
		if now == (machine.Reading{}) {
			now, _ = r.look(ctx)
		}
		return r.runEntity(ctx, sl, e, now)
	}
}

// runMost bounds the messages of one run, and runLong the time after which a run
// begins no further message: the messages that were handed out have to be taken back
// before anything else can happen to the entity.
const (
	runMost = 64
	runLong = time.Millisecond
)

// deserted ends a step from which an entity did not return, as a failure.
func (r *router) deserted(ctx *Context, sl *slot, e *cell.Entity, op cell.Op) cell.Op {
	r.system.counters.panics.Add(1)
	r.system.log.Error("entity ended its goroutine", "kind", r.name, "entity", e.ID())
	switch op {
	case cell.OpStart:
		return r.started(sl, e, errDeserted)
	case cell.OpStop:
		return r.stopped(sl, e)
	default:
		return r.done(ctx, sl, e, failed(errDeserted))
	}
}

var errDeserted = errors.New("it ended its goroutine")

func (r *router) started(sl *slot, e *cell.Entity, err error) cell.Op {
	now := r.system.clock.Instant()
	if err == nil {
		return r.after(sl, e, func(out *cell.Actions) { sl.cell.Started(now, e, true, out) })
	}
	r.endTimers(sl, e)
	return r.after(sl, e, func(out *cell.Actions) { sl.cell.StartFailed(now, e, detailOf(err), out) })
}

// beginStop returns why an entity is stopped; false if it must not be stopped now.
func (r *router) beginStop(sl *slot, e *cell.Entity) (why StopReason, begins bool) {
	now := r.system.clock.Instant()
	held := r.system.standing.HeldAt(now)
	var reason cell.StopReason
	r.after(sl, e, func(out *cell.Actions) { reason, begins = sl.cell.BeginStop(now, e, held, out) })
	return StopReason(reason), begins
}

func (r *router) stopped(sl *slot, e *cell.Entity) cell.Op {
	return r.after(sl, e, func(out *cell.Actions) { sl.cell.Stopped(r.system.clock.Instant(), e, out) })
}

// done tells the cell the outcome of a message. The reply is withheld when the clock
// shows no standing any more. One reading of the clock serves the end of this message and
// the beginning of the next, which begins at once. While other entities wait for a worker,
// an entity that has had a run of messages lets them go first.
func (r *router) done(ctx *Context, sl *slot, e *cell.Entity, result cell.Result) cell.Op {
	now, held := r.look(ctx)
	ctx.now = now
	result.Withhold = !held
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.free.keep(&r.system.messages, sl.cell.Ran(e, ctx.ran, &sl.out))
	sl.cell.Done(now.From, e, result, &sl.out)
	op := r.carry(sl, e)
	ctx.ahead, ctx.ran = nil, 0
	ctx.runs++
	switch {
	case op != cell.OpRun:
	case ctx.runs > 1 && r.system.queue.waiting.Load() > 0:
		ctx.yields = true
	default:
		ctx.ahead, ctx.ends = sl.cell.Ahead(e, runMost), sl.ends.Load()
	}
	return op
}

// after tells the cell the outcome of a step, by f, and returns the entity's next step.
func (r *router) after(sl *slot, e *cell.Entity, f func(out *cell.Actions)) cell.Op {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	f(&sl.out)
	return r.carry(sl, e)
}

// look reads the clock and tells whether the node has standing. That it has none is said by
// a full reading only.
func (r *router) look(ctx *Context) (now machine.Reading, held bool) {
	now = ctx.clock.Read()
	if held = r.system.standing.HeldThrough(now); !held && !now.Full() {
		now = ctx.clock.ReadInFull()
		held = r.system.standing.HeldThrough(now)
	}
	return now, held
}

// may reports whether message m may begin, by the standing and by its deadline, at a moment
// of which now is a reading.
func (r *router) may(m *cell.Message, now machine.Reading) (held, inTime bool) {
	return r.system.standing.HeldThrough(now), !m.Expired(now.To)
}

// runEntity lets an entity handle its message, unless the node's clock shows
// no standing.
func (r *router) runEntity(ctx *Context, sl *slot, e *cell.Entity, now machine.Reading) cell.Op {
	held, inTime := r.may(e.Message(), now)
	if (!held || !inTime) && !now.Full() { // Only a full reading is a reason not to begin.
		now = ctx.clock.ReadInFull()
		held, inTime = r.may(e.Message(), now)
	}
	switch {
	case !held:
		return r.after(sl, e, func(out *cell.Actions) { sl.cell.Postpone(now.From, e, out) })
	case !inTime:
		return r.after(sl, e, func(out *cell.Actions) { sl.cell.Lapse(now.From, e, out) })
	}
	result := r.handle(ctx, e, e.Message())
	for m := ctx.ahead; m != nil && !result.Failed; m = m.Next() {
		begins, held := r.look(ctx)
		if begins.To.Sub(now.From) > runLong || !held || sl.ends.Load() != ctx.ends {
			break
		}
		ctx.reply = nil
		ctx.ran++ // Counted before the call, from which the entity may not return.
		result = r.handle(ctx, e, m)
	}
	return r.done(ctx, sl, e, result)
}

// handle lets an entity handle a message and returns the result. A message that cannot
// be decoded is the sender's fault: the entity does not see the message, and stays. An
// entity whose reply cannot be encoded stays as well.
func (r *router) handle(ctx *Context, e *cell.Entity, m *cell.Message) cell.Result {
	defer ctx.returned()
	if m.Own {
		return r.timeUp(ctx, e, m)
	}
	if err := r.decode(e, m); err != nil {
		r.system.log.Warn("message cannot be decoded", "kind", r.name, "entity", e.ID(), "error", err)
		return cell.Result{Reply: failure("the message cannot be decoded: " + err.Error())}
	}
	if err := r.receive(ctx, e, m); err != nil {
		r.system.log.Warn("entity failed", "kind", r.name, "entity", e.ID(), "error", err)
		return failed(err)
	}
	if m.Correlation == 0 {
		m.Value = nil // Nobody reads the value any more.
		return cell.Result{}
	}
	return cell.Result{Reply: r.answer(ctx.reply, e, m)}
}

// failed is the outcome of a message at which its entity failed.
func failed(err error) cell.Result {
	detail := detailOf(err)
	return cell.Result{Failed: true, Reason: detail, Reply: failure(detail)}
}

// failure is the answer to a message that was not handled as it should be.
func failure(detail string) *protocol.Reply {
	return &protocol.Reply{Code: protocol.CodeEntityFailed, Detail: detail}
}

// detailBytesMax bounds the text of an entity's error, which may travel with many
// replies, and is kept while the entity rests.
const detailBytesMax = 1000

// frozen turns an error of the program into an error that is text and nothing else. The
// Error method of the former is code of the program too and may panic, so frozen is called
// only where a panic is caught.
func frozen(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(detailOf(err))
}

// detailOf returns the text of an error, shortened where it is too long, and as valid
// UTF-8 whatever the entity put into it, so that the text can travel.
func detailOf(err error) string {
	text := err.Error()
	if len(text) > detailBytesMax {
		text = text[:detailBytesMax] + "..."
	}
	return strings.ToValidUTF8(text, "?")
}

// decode decodes a message that came from another node.
func (r *router) decode(e *cell.Entity, m *cell.Message) (err error) {
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
func (r *router) hand(ctx *Context, e *cell.Entity, m *cell.Message) (err error) {
	defer r.recovered(e, &err)
	return frozen(r.entity.receive(ctx, instanceOf(e), m.Value))
}

// answer makes the reply to a message, encoded when the asker is elsewhere.
func (r *router) answer(value any, e *cell.Entity, m *cell.Message) *protocol.Reply {
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

func (r *router) encodeReply(e *cell.Entity, value any) (payload []byte, err error) {
	defer r.recovered(e, &err)
	payload, err = r.codec.Append(nil, value)
	return payload, frozen(err)
}

// startEntity creates an entity and starts it.
func (r *router) startEntity(ctx *Context, e *cell.Entity) (err error) {
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
	if t, ok := e.Value.(*timed); ok { // The program's New has set timers.
		t.entity = entity
	} else {
		e.Value = entity
	}
	if s, ok := entity.(Starter); ok {
		return frozen(s.Start(ctx))
	}
	return nil
}

// stopEntity calls the Stop of an entity that has one.
func (r *router) stopEntity(ctx *Context, e *cell.Entity) {
	var err error
	defer ctx.returned()
	defer r.recovered(e, &err)
	if s, ok := instanceOf(e).(Stopper); ok {
		s.Stop(ctx)
	}
}

// recovered turns a panic of an entity into an error: a panic ends the entity, never
// the process.
func (r *router) recovered(e *cell.Entity, err *error) {
	if v := recover(); v != nil {
		r.system.counters.panics.Add(1)
		r.system.log.Error("entity panicked", "kind", r.name, "entity", e.ID(), "panic", v, "stack", string(debug.Stack()))
		*err = fmt.Errorf("sharding: panic: %v", v)
	}
}
