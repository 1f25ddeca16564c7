// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/optional"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding/internal/asking"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/census"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/hosting"
	"github.com/quorate/quorate/sharding/internal/leases"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/internal/survey"
	"github.com/quorate/quorate/sharding/internal/telemetry"
	"github.com/quorate/quorate/sharding/internal/timers"
	"github.com/quorate/quorate/sharding/internal/workers"
)

// The code of a kind, and the goroutines that run it: the pool finds a worker, or starts it, and runJobs does one
// job after the other. The runtime says which code of the program comes next, and is told how
// that went; call has it run. Then follow the calls of the program's code, where panics are
// caught: messages, start, stop, timers, snapshots. Last what hides the type of the messages.

// local is what the code of all kinds, and the messages to it, use of the node that they are on.
type local struct {
	node     *membership.Node
	self     gossip.NodeID
	clock    *machine.SystemClock
	standing *membership.Standing
	cfg      Config
	log      *slog.Logger
	ctx      context.Context    //nolint:containedctx // Ends with the system, and with it what the goroutines wait for.
	ended    chan struct{}      // Closed when every cell has been abandoned.
	control  *asking.Machine    // Asks the control machine, or by it a coordinator.
	surveys  *census.Asker      // Asks all nodes, and answers them.
	contexts *hosting.Contexts  // Those of entities.
	leases   *leases.Leases     // Those of shards.
	counters telemetry.Counters // What no cell counts.
	metrics  *telemetry.Metrics
	tracing  *telemetry.Tracing
	asks     sync.Pool // Asks that have ended, for reuse. A pool of this system alone, since asks hold channels.
}

// closed returns the error of calls after the end of the node: [ErrClosed], with the
// reason for which the node ended, when that is known already.
func (l *local) closed() error {
	if err := l.node.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return ErrClosed
}

// unanswered is the error of who got no answer: ctx has ended, or the node.
func (l *local) unanswered(ctx context.Context) error {
	return cmp.Or(context.Cause(ctx), l.closed())
}

// ask asks the control machine, or by it a coordinator, what it answers under an id. The error is that of ctx, or
// [ErrClosed].
func (l *local) ask(ctx context.Context, input func(id uint64) machine.Input) (any, error) {
	answer, ok := l.control.Ask(ctx, input)
	if !ok {
		return nil, l.unanswered(ctx)
	}
	return answer, nil
}

// survey asks nodes, and waits for the result. The error is that of ctx, or [ErrClosed].
func (l *local) survey(ctx context.Context, a survey.Ask) (survey.Finished, error) {
	f, ok := l.surveys.Ask(ctx, a)
	if !ok {
		return f, l.unanswered(ctx)
	}
	return f, nil
}

// wall returns the wall-clock time of an instant of the past.
func (l *local) wall(t machine.Instant) time.Time {
	now := l.clock.Now()
	return now.Wall.Add(-now.Mono.Sub(t))
}

// program is the code of a kind: what runs on this node for its entities.
type program struct {
	local  *local
	kind   string
	codec  Codec
	entity behaviour
	spans  *telemetry.Kind
	region *runtime.Region

	checker *optional.Checker             // Of entities.
	scale   atomic.Pointer[control.Scale] // How many shards are in use, as a coordinator has said; nil: none has.
	deserts atomic.Bool                   // The codec has ended the goroutine that had it decode.
}

// job is an entity with something to do.
type job struct {
	of   *program
	task runtime.Task
	ctx  *Context // Holds the steps that the job has taken so far; nil before the first.
}

// class returns the class of the job.
func (j job) class() runtime.Class {
	if j.ctx != nil {
		return j.ctx.job.Class()
	}
	return j.task.Class()
}

// worker is a goroutine that does one job after the other.
type worker = workers.Worker[job]

// executor runs the jobs of all kinds.
type executor struct {
	pool  workers.Pool[job]
	clock *machine.SystemClock
}

// newExecutor returns an executor; goes runs a function on a goroutine of the system.
func newExecutor(clock *machine.SystemClock, goes func(func())) *executor {
	x := &executor{clock: clock}
	// The goroutine is owned by the system: it ends when no other job has come for a
	// while; AwaitEnd waits for that.
	x.pool.Init(func(w *worker, j job) { goes(func() { x.runJobs(w, j) }) })
	return x
}

// runJobs does one job after the other.
func (x *executor) runJobs(w *worker, j job) {
	call := runtime.CallNone // The code of the program that runs.
	defer func() {
		if call != runtime.CallNone {
			// The entity ended this goroutine, by runtime.Goexit. The step has failed, and
			// another goroutine goes on with the next.
			x.pool.Leave(w)
			j.of.deserted(j.ctx, call)
			x.pool.Put(j, j.class())
		}
	}()
	clock := x.clock.Reader()
	for more := true; more; {
		if j.ctx == nil {
			j.ctx = &Context{program: j.of, job: runtime.NewJob(j.task)}
		}
		j.ctx.job.Clocked(&clock)
		switch begins := j.ctx.job.Begin(); begins {
		case runtime.CallNone:
			j = job{} // The memory of the finished job can be freed while this goroutine waits.
			j, more = x.pool.Next(w)
		case runtime.CallYield:
			j, more = x.pool.Exchange(w, j, j.class())
		default:
			call = begins
			j.of.call(w, j.ctx, call)
			call = runtime.CallNone
		}
	}
}

// call has a worker run the code of the program that comes next, and says how that went.
func (p *program) call(w *worker, ctx *Context, call runtime.Call) {
	ctx.reply, ctx.effects = nil, nil
	switch call {
	case runtime.CallStart:
		w.Enter()
		err := p.start(ctx)
		w.Return()
		ctx.settle(err == nil)
		p.started(ctx, err)
	case runtime.CallStop:
		w.Enter()
		timers.End(&ctx.job)
		ctx.stop = StopReason(ctx.job.Why())
		ordered := p.stop(ctx)
		ctx.stop = StopNone
		w.Return()
		ctx.job.Stopped(ordered && p.snapshots(ctx.job.Entity()))
	case runtime.CallSnapshot:
		w.Enter()
		s, lost := p.snapshot(ctx)
		w.Return()
		ctx.job.Gave(s, lost)
	default:
		w.Enter()
		result := p.handle(ctx, ctx.job.Mail())
		w.Return()
		ctx.settle(!result.Failed)
		ctx.job.Handled(result)
	}
}

// deserted ends a call from which an entity did not return, as a failure.
func (p *program) deserted(ctx *Context, call runtime.Call) {
	p.local.counters.Panics.Add(1)
	p.local.log.ErrorContext(ctx.traced(), "entity ended its goroutine", "kind", p.kind, "entity", ctx.ID())
	switch call {
	case runtime.CallStart:
		p.started(ctx, errDeserted)
	case runtime.CallStop:
		ctx.stop = StopNone
		ctx.job.Stopped(false)
	case runtime.CallSnapshot:
		ctx.job.Gave(nil, protocol.LossFailed)
	default:
		ctx.job.Handled(failed(errDeserted))
	}
}

var errDeserted = errors.New("it ended its goroutine")

// started says that an entity was started, or why not.
func (p *program) started(ctx *Context, err error) {
	if err == nil {
		ctx.job.Started(true, "")
		return
	}
	ctx.job.Started(false, detailOf(err))
}

// handle lets an entity handle a message and returns the result. A message that cannot
// be decoded is the sender's fault: the entity does not see the message, and stays. An
// entity whose reply cannot be encoded stays as well.
func (p *program) handle(ctx *Context, m cell.Mail) cell.Result {
	defer ctx.returned()
	e := ctx.job.Entity()
	if m.Own() {
		return p.timeUp(ctx, m)
	}
	value, err := p.value(e, m)
	if err != nil {
		p.local.log.WarnContext(ctx.traced(), "message cannot be decoded", "kind", p.kind, "entity", e.ID(), "error", err)
		return cell.Result{Reply: failure("the message cannot be decoded: " + err.Error())}
	}
	if len(m.Trace()) == 0 {
		err = p.hand(ctx, e, value)
	} else {
		err = p.receive(ctx, e, m, value)
	}
	if err != nil {
		p.local.log.WarnContext(ctx.traced(), "entity failed", "kind", p.kind, "entity", e.ID(), "error", err)
		return failed(err)
	}
	if m.Correlation() == 0 {
		return cell.Result{}
	}
	return cell.Result{Reply: p.answer(ctx.reply, e, m.Origin(p.local.self))}
}

// receive hands a message that has a trace context to its entity, within a span if that is
// sampled.
func (p *program) receive(ctx *Context, e *cell.Entity, m cell.Mail, value any) (err error) {
	parent, sampled := p.local.tracing.Sampled(m.Trace())
	if !sampled {
		return p.hand(ctx, e, value)
	}
	role := telemetry.Consumer
	if m.Correlation() != 0 {
		role = telemetry.Server
	}
	_, ctx.span = p.spans.Begin(parent, role, e.ID(), ctx.job.Slot().Shard().Index(), value, m.Origin(p.local.self))
	fault, text := telemetry.Word(protocol.CodeEntityFailed), errDeserted.Error() // Holds when the entity does not return from the call.
	defer func() { telemetry.Finish(ctx.span, fault, text) }()
	if err = p.hand(ctx, e, value); err == nil {
		fault = ""
	} else {
		text = err.Error()
	}
	return err
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

// maxDetailBytes bounds the text of an entity's error, which may travel with many
// replies, and is kept while the entity rests.
const maxDetailBytes = 1000

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
	if len(text) > maxDetailBytes {
		text = text[:maxDetailBytes] + "..."
	}
	return strings.ToValidUTF8(text, "?")
}

// value returns the value of a message, decoded if it came from another node.
func (p *program) value(e *cell.Entity, m cell.Mail) (value any, err error) {
	switch v := m.Value.(type) {
	case *undecodable:
		return nil, v.err
	case nil:
		if runtime.TooLarge(m.Message()) {
			return nil, errTooLarge
		}
		return p.decode(e.ID(), m.Message().Payload)
	default:
		return v, nil
	}
}

// undecodable takes the place of the value of a message that cannot be decoded, until the
// message has its turn.
type undecodable struct{ err error }

// decodeEarly decodes a message that comes from another node, on the goroutine that reads the
// connection; nil if that is left to the worker. A codec that ends its goroutine, by
// runtime.Goexit, ends the connection, which comes again with the same message. From then on the
// workers decode for the kind: they survive that.
func (p *program) decodeEarly(id string, payload []byte) any {
	if p.deserts.Load() {
		return nil
	}
	returned := false
	defer func() {
		if !returned {
			p.deserts.Store(true)
			p.local.log.Error("codec ended its goroutine", "kind", p.kind, "entity", id)
		}
	}()
	value, err := p.decode(id, payload)
	returned = true
	if err != nil {
		return &undecodable{err}
	}
	return value
}

// decode decodes a message that came from another node.
func (p *program) decode(id string, payload []byte) (value any, err error) {
	defer p.recovered(nil, id, &err)
	value = p.entity.blank()
	if err := p.codec.Decode(payload, value); err != nil {
		return nil, frozen(err)
	}
	return value, nil
}

var errTooLarge = errors.New("its sender's transport has smaller frames than it needs")

// hand hands a message to its entity.
func (p *program) hand(ctx *Context, e *cell.Entity, value any) (err error) {
	defer p.recovered(ctx, e.ID(), &err)
	err = p.entity.receive(ctx, timers.Instance(e), value)
	if r, refused := errors.AsType[*RefusalError](err); refused {
		ctx.refused(r, err)
		return nil
	}
	return frozen(err)
}

// answer makes the reply to a message, encoded when the asker is elsewhere.
func (p *program) answer(value any, e *cell.Entity, asker gossip.NodeID) *protocol.Reply {
	if value == nil {
		return failure("the entity gave no reply")
	}
	if failed, ok := value.(*protocol.Reply); ok {
		return failed // A refusal without a reply.
	}
	if asker == p.local.self {
		return &protocol.Reply{Value: value}
	}
	payload, err := p.encodeReply(e, value)
	switch {
	case err != nil:
		return failure("the reply cannot be encoded: " + err.Error())
	case len(payload) > p.local.cfg.MaxMessageBytes:
		return failure(fmt.Sprintf("the reply has %d bytes, sharding.max-message-bytes is %d", len(payload), p.local.cfg.MaxMessageBytes))
	}
	return &protocol.Reply{Payload: payload}
}

func (p *program) encodeReply(e *cell.Entity, value any) (payload []byte, err error) {
	defer p.recovered(nil, e.ID(), &err)
	payload, err = p.codec.Append(nil, value)
	return payload, frozen(err)
}

// start creates an entity and starts it.
func (p *program) start(ctx *Context) (err error) {
	e := ctx.job.Entity()
	defer func() {
		if err != nil {
			p.local.log.WarnContext(ctx.traced(), "entity did not start", "kind", p.kind, "entity", e.ID(), "error", err)
		}
	}()
	defer ctx.returned()
	defer p.recovered(ctx, e.ID(), &err)
	entity := p.created(ctx)
	if memory := ctx.job.Snapshot(); entity != nil && memory != nil {
		entity = p.revive(ctx, entity, memory)
	}
	if entity == nil {
		return errors.New("sharding: New returned nil")
	}
	if err := p.checker.Check(entity); err != nil {
		return frozen(err)
	}
	if s, ok := entity.(Starter); ok {
		return frozen(s.Start(ctx))
	}
	return nil
}

// created returns a new entity, nil if New does, and makes it the instance.
func (p *program) created(ctx *Context) any {
	entity := p.entity.create(ctx)
	ctx.job.Entity().Value = entity
	return entity
}

// stop calls the Stop of an entity that has one, and reports whether that has not panicked.
func (p *program) stop(ctx *Context) (ordered bool) {
	var err error
	e := ctx.job.Entity()
	defer ctx.returned()
	defer func() { ordered = err == nil }()
	defer p.recovered(ctx, e.ID(), &err)
	if s, ok := timers.Instance(e).(Stopper); ok {
		s.Stop(ctx)
	}
	return true
}

// timeUp handles the message of a timer that has fired, on the goroutine that runs the
// entity.
func (p *program) timeUp(ctx *Context, m cell.Mail) cell.Result {
	e, t := ctx.job.Entity(), timers.Due(&ctx.job, m)
	if t == nil {
		return cell.Result{}
	}
	if err := p.callTimer(ctx, e, t); err != nil {
		p.local.log.Warn("entity failed", "kind", p.kind, "entity", e.ID(), "timer", t.Name, "error", err)
		return cell.Result{Failed: true, Reason: detailOf(err)}
	}
	t.Again(&ctx.job)
	return cell.Result{}
}

// callTimer calls the function of a timer, or the entity's ReceiveTimeout.
func (p *program) callTimer(ctx *Context, e *cell.Entity, t *timers.Timer) (err error) {
	defer p.recovered(ctx, e.ID(), &err)
	if call, ok := t.Call.(func(*Context) error); ok {
		return frozen(call(ctx))
	}
	if h, ok := timers.Instance(e).(ReceiveTimeouter); ok {
		return frozen(h.ReceiveTimeout(ctx))
	}
	ctx.Passivate()
	return nil
}

// snapshots reports whether an entity can give a snapshot, and may.
func (p *program) snapshots(e *cell.Entity) bool {
	_, can := timers.Instance(e).(Snapshotter)
	return can && p.local.cfg.SnapshotBytes > 0 && p.local.cfg.SnapshotShardBytes > 0
}

// snapshot asks an entity, which has stopped, for its memory.
func (p *program) snapshot(ctx *Context) (data []byte, lost protocol.Loss) {
	e := ctx.job.Entity()
	data, err := p.takeSnapshot(ctx, e)
	switch most := p.local.cfg.SnapshotBytes; {
	case err != nil:
		p.local.log.Warn("entity gave no snapshot", "kind", p.kind, "entity", e.ID(), "error", err)
		return nil, protocol.LossFailed
	case len(data) > most:
		p.local.log.Warn("snapshot of an entity is too large", "kind", p.kind, "entity", e.ID(), "bytes", len(data), "sharding.snapshot-bytes", most)
		return nil, protocol.LossTooLarge
	default:
		return data, protocol.LossNone
	}
}

func (p *program) takeSnapshot(ctx *Context, e *cell.Entity) (data []byte, err error) {
	defer ctx.returned()
	defer p.recovered(ctx, e.ID(), &err)
	data, err = timers.Instance(e).(Snapshotter).Snapshot(ctx)
	return data, frozen(err)
}

// revive returns an entity that has the memory of the last instance: the given one, which is new, or
// another one without memory if that cannot be.
func (p *program) revive(ctx *Context, entity any, memory []byte) any {
	err := p.restore(ctx, entity, memory)
	if err == nil {
		ctx.job.Restored()
		return entity
	}
	p.local.log.Warn("entity starts without its memory", "kind", p.kind, "entity", ctx.ID(), "error", err)
	ctx.settle(false) // What the one that is given up has ordered.
	ctx.job.Entity().Value = nil
	return p.created(ctx)
}

var errNoSnapshotter = errors.New("sharding: the entity has no method Restore")

func (p *program) restore(ctx *Context, entity any, memory []byte) (err error) {
	s, ok := entity.(Snapshotter)
	if !ok {
		return errNoSnapshotter
	}
	defer p.recovered(ctx, ctx.ID(), &err)
	return frozen(s.Restore(ctx, memory))
}

// recovered turns a panic of an entity into an error: a panic ends the entity, never
// the process. The call under way is nil for what is no call of the entity.
func (p *program) recovered(ctx *Context, id string, err *error) {
	if v := recover(); v != nil {
		p.local.counters.Panics.Add(1)
		p.local.log.ErrorContext(ctx.traced(), "entity panicked", "kind", p.kind, "entity", id, "panic", v, "stack", string(debug.Stack()))
		*err = fmt.Errorf("sharding: panic: %v", v)
	}
}

// behaviour hides the type of the messages from the runtime.
type behaviour interface {
	// create returns a new entity.
	create(c *Context) any
	// blank returns a new, empty message, for a codec to decode into.
	blank() any
	// none returns the message that is nil.
	none() any
	// receive hands a message to an entity.
	receive(c *Context, entity, message any) error
}

// typed is the behaviour of entities of type Entity[C].
type typed[C any] struct{ new func(*Context) Entity[C] }

func (t typed[C]) create(c *Context) any { return t.new(c) }

func (t typed[C]) blank() any { return reflect.New(reflect.TypeFor[C]().Elem()).Interface() }

func (typed[C]) none() any {
	var none C // A pointer, as Kind.validate has seen to.
	return none
}

func (t typed[C]) receive(c *Context, entity, message any) error {
	m, ok := message.(C)
	if !ok {
		return fmt.Errorf("sharding: message is a %T, want %s", message, reflect.TypeFor[C]())
	}
	return entity.(Entity[C]).Receive(c, m)
}
