// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/optional"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/internal/timers"
)

// What a program writes, and what an entity sees: first the interfaces of an entity, Entity with the optional Starter,
// Stopper, ReceiveTimeouter and Snapshotter, the reasons of a stop, and the error by which an entity refuses a message;
// then Context, by which an entity learns of its place, replies, sets timers and passivates itself. What it orders
// during a call is an effect, which happens when the call has returned without an error or a refusal.

// Entity handles the messages of one id. Its methods are called by one
// goroutine at a time, with everything that an earlier call wrote visible.
type Entity[C any] interface {
	// Receive handles one message. It may block; nothing else of this entity
	// happens meanwhile. It answers by [Context.Reply]; when Receive returns without
	// having answered an ask, the ask ends with [ErrEntityFailed]. An error, or a panic,
	// means that the entity is not usable any more: the sender is told
	// [ErrEntityFailed] in place of the reply, the entity is stopped, and
	// [Kind.OnFailure] says what then becomes of it. A fault of the message alone, which
	// leaves the entity usable, is a reply, or a [RefusalError] if nothing is to come of the call.
	Receive(c *Context, message C) error
}

// Starter is an optional interface of an entity: Start runs before the first
// message. An error means that the entity cannot run now: the messages that wait for it
// end with [ErrEntityFailed] and the text of the error. So do further messages, for a
// time that doubles with each failure, from sharding.entity-restart-backoff to
// thirty times that.
type Starter interface{ Start(c *Context) error }

// Stopper is an optional interface of an entity: Stop runs after the last
// message of an entity whose Start, if it has one, succeeded.
//
// Mostly no other instance of the entity runs then: Stop may write what is not written
// yet, and give back what is locked. But an instance that was replaced, or whose node was
// declared down, is stopped as well, and its successor may have been running for long.
// What Stop writes or unlocks then harms the successor. So Stop asks [Context.StopReason]
// first, and frees nothing but its own memory and connections unless the reason is
// [StopReason.Sole]:
//
//	func (a *Account) Stop(c *sharding.Context) {
//		if c.StopReason().Sole() {
//			a.flush(c.Context(), c.Epoch())
//		}
//	}
//
// While Stop runs the node may lose its standing, as while a message is handled: the
// context ends then, and a storage that checks the epoch refuses later writes.
type Stopper interface{ Stop(c *Context) }

// ReceiveTimeouter is an optional interface of an entity: ReceiveTimeout runs when
// no message came for the time of [Context.SetReceiveTimeout], and again after each
// further such time. Like Receive, ReceiveTimeout runs alone, and its error means that the
// entity is not usable any more.
type ReceiveTimeouter interface{ ReceiveTimeout(c *Context) error }

// Snapshotter is an optional interface of an entity: it takes its memory along when its shard moves
// to another node in order, without any storage.
//
//	old home:  ... last message ──> Stop ──> Snapshot ──┐
//	                                                    │ with the shard
//	new home:                New ──> Restore ──> Start <┘ ──> first message
//
// Snapshot runs after Stop, if the reason of the stop was [StopMoved] or [StopLeaving], and returns the
// memory as bytes, which the entity does not use afterwards; nil: there is nothing to take along. It
// should read the memory of the entity and nothing else: it may go on when a successor runs, if it
// takes longer than half of sharding.handoff-timeout. Restore runs before Start, in a new instance on
// any node that runs the kind, with those bytes, which it may keep. If the move is called off, the
// next instance on the old home is restored.
//
// The memory is that of the latest instance, and is restored once, or not at all: when Snapshot or
// Restore returns an error or panics, when there are more bytes than sharding.snapshot-bytes or
// sharding.snapshot-shard-bytes permit, when the node, the coordinator or the next home dies on the
// way, after every stop for another reason, and when a node on the way has a version of the program
// that does not know of snapshots. Then the entity starts as if it had no Snapshotter; after a Restore
// that failed, with another instance of New. So an entity that implements Snapshotter can always begin
// without: what must not be lost belongs into a storage.
//
// The memory of an entity to which no message has come yet waits as bytes, for
// sharding.passivate-after at most; then it is dropped, as the entity would have been stopped.
type Snapshotter interface {
	Snapshot(c *Context) ([]byte, error)
	Restore(c *Context, snapshot []byte) error
}

// EntityChecker returns what refuses an entity that has a method with the name of one of the optional interfaces of
// an entity and another signature, which would never be called. Methods of own, the interface of a service that names
// its calls as it likes, are not looked at; nil if there is none. The runtime checks each entity. It is for what
// stands in its place, as package typed does.
func EntityChecker(own reflect.Type) *optional.Checker {
	return optional.NewChecker(own,
		reflect.TypeFor[Starter](), reflect.TypeFor[Stopper](), reflect.TypeFor[Snapshotter](), reflect.TypeFor[ReceiveTimeouter]())
}

// StopReason says why an entity is stopped, and with that whether a successor of it may
// run already. Only the values for which [StopReason.Sole] holds exclude that.
//
//	StopPassivated  it was idle, or asked for it        sole
//	StopFailed      it failed at a message              sole
//	StopMoved       its shard moves to another node     sole
//	StopLeaving     the same, since this node leaves    sole
//	StopReplaced    its shard lives elsewhere by now,   a successor may run
//	                or went on without it
//	StopLost        this node has ended, or was         a successor may run
//	                declared down
type StopReason uint8

// The reasons, see [StopReason].
const (
	StopNone       = StopReason(cell.StopNone) // The entity is not being stopped.
	StopPassivated = StopReason(cell.StopPassivated)
	StopFailed     = StopReason(cell.StopFailed)
	StopMoved      = StopReason(cell.StopMoved)
	StopLeaving    = StopReason(cell.StopLeaving)
	StopReplaced   = StopReason(cell.StopReplaced)
	StopLost       = StopReason(cell.StopLost)
)

// Sole reports whether no other instance of the entity can have started when the stop
// begins, nor can before it ends, unless this node loses its standing meanwhile: the
// context of the entity ends then.
func (r StopReason) Sole() bool { return cell.StopReason(r).Sole() }

// String returns the name of the reason.
func (r StopReason) String() string { return cell.StopReason(r).String() }

// RefusalError is an error of [Entity.Receive] that says that nothing was changed: the entity stays, and who asked
// gets Reply. What the call has ordered before does not happen: its reply, its timers, its [Context.Passivate], and
// of an entity of package state all changes of the state, events and what was to run after the save. The fields of an
// entity that keeps its memory by itself are not the runtime's: only the entity can undo what it has done to them, so
// it looks before it changes anything. What was sent to others has left.
//
// A refusal of a message that was told is heard by nobody, and one of a timer is a failure like any other error.
type RefusalError struct {
	// Reply is the answer, as in [Context.Reply]; nil ends the ask with [ErrEntityFailed] and the text of the error.
	Reply any
}

// Refuse returns a [*RefusalError] with a reply.
func Refuse(reply any) error { return &RefusalError{reply} }

// Error implements error.
func (r *RefusalError) Error() string { return "the message was refused" }

// Epoch numbers the homes of a shard. Later homes have higher epochs, in the order of
// Compare, of the text form and of the byte form. Package epoch is all that a storage
// needs to compare epochs.
type Epoch = epoch.Epoch

// Context tells an entity where it lives and what it is at. A Context is valid during
// the call to which it was passed, and belongs to that call's goroutine.
type Context struct {
	program *program
	job     runtime.Job // The job of the entity, of which the call is a part.
	reply   any
	effects []effect // What the call has ordered so far.
	stop    StopReason

	span trace.Span // The span of the message that is being handled, if its trace is sampled; else nil.
	turn *turn      // The turn of the call under way, once the entity has asked for a context; else nil.
}

// turn is one call of a method of an entity. The contexts that the entity gets during
// the call carry the turn, so that an ask of the entity to itself is recognised.
type turn struct {
	of     *program
	entity string
	over   atomic.Bool // The entity has returned.
}

// turnKey is the key of the [turn] in a context.
type turnKey struct{}

// returned ends the turn: the entity's method has returned, and what came of it is in the log.
func (c *Context) returned() {
	if c.turn != nil {
		c.turn.over.Store(true)
		c.turn = nil
	}
	c.span = nil
}

// asksItself reports whether an ask with ctx comes from a call of the very entity that
// is asked, which would wait for itself.
func (p *program) asksItself(ctx context.Context, id string) bool {
	t, _ := ctx.Value(turnKey{}).(*turn)
	return t != nil && t.of == p && t.entity == id && !t.over.Load()
}

var (
	errRepliedTwice = errors.New("sharding: a message is answered once")
	errReplyNil     = errors.New("sharding: a reply is not nil")
)

// ID returns the id of the entity.
func (c *Context) ID() string { return c.job.Entity().ID() }

// Kind returns the name of the entity's kind.
func (c *Context) Kind() string { return c.program.kind }

// Node returns the node on which the entity runs.
func (c *Context) Node() gossip.NodeID { return c.program.local.self }

// Epoch returns the epoch of the shard's present home. A storage that refuses
// a write with an epoch lower than one that it has seen cannot be written by an
// owner that was replaced.
func (c *Context) Epoch() Epoch { return c.job.Entity().Epoch() }

// Context returns a context that ends when the node loses its standing, or the lease of the shard, or
// stops, or when the shard goes on without the entity, so that the entity waits for
// nothing in vain. Its Err and its Done look at the clock: once the standing or the lease has passed, the next look
// finds the context ended, also in a process that was frozen and whose other goroutines have not run yet. A context
// that package context derives from it does not look. An orderly move does not end the context: the move waits for the
// entity. The context of a message that belongs to a trace carries the span: what the
// entity sends or asks with that context belongs to the same trace. An ask to the entity
// itself with the context fails at once, with [ErrAskedItself].
func (c *Context) Context() context.Context {
	if c.turn == nil {
		c.turn = &turn{of: c.program, entity: c.job.Entity().ID()}
	}
	return context.WithValue(c.within(c.program.local.contexts.Of(c.program.region, c.job.Slot(), c.job.Entity())), turnKey{}, c.turn)
}

// within returns a context with the trace of the message that is being handled.
func (c *Context) within(ctx context.Context) context.Context {
	switch {
	case c.span != nil:
		return trace.ContextWithSpan(c.program.local.tracing.Carried(ctx, c.job.Mail().Trace()), c.span)
	case len(c.job.Mail().Trace()) > 0:
		return c.program.local.tracing.Extract(ctx, c.job.Mail().Trace())
	default:
		return ctx
	}
}

// traced returns the context for a line in the log about the call under way, nil if there is none.
func (c *Context) traced() context.Context {
	if c == nil {
		return context.Background()
	}
	return c.within(context.Background())
}

// StopReason says why the entity is stopped, during its Stop; [StopNone] otherwise.
func (c *Context) StopReason() StopReason { return c.stop }

// Passivate stops the entity as soon as no message waits for it, so that it uses
// no memory; the next message starts it again. No message is lost or overtaken:
// messages that come meanwhile are handled before the stop or after the next start.
func (c *Context) Passivate() {
	c.effects = append(c.effects, effect{do: func() {
		c.job.Slot().Step(func(in *cell.Cell, out *cell.Actions) {
			in.Instances().Passivate(c.program.local.clock.Instant(), c.job.Entity(), out)
		})
	}})
}

// Reply answers the message that is being handled. The answer leaves when Receive has
// returned nil and the node has standing. Reply does nothing when nobody waits for an
// answer, and fails when the message was answered before, or with nil. A reply that
// cannot be encoded for another node ends the ask with [ErrEntityFailed].
func (c *Context) Reply(message any) error {
	switch {
	case c.reply != nil:
		return errRepliedTwice
	case isNil(message):
		return errReplyNil
	}
	c.reply = message
	return nil
}

// isNil reports whether a message is nil or a nil pointer.
func isNil(message any) bool {
	if message == nil {
		return true
	}
	v := reflect.ValueOf(message)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// SetReceiveTimeout sets a receive timeout, which is due when no message of the entity
// came, and none of its timers ran, for a time. An entity with the method ReceiveTimeout
// is told by that method, any other entity is stopped as by [Context.Passivate]. Zero or
// less cancels the receive timeout. The time begins when the present call returns, and
// anew with each message.
//
// An entity with a receive timeout, or with a timer, is not stopped for being idle
// by sharding.passivate-after: the entity says itself when it stops.
func (c *Context) SetReceiveTimeout(d time.Duration) {
	c.effects = append(c.effects, effect{do: func() { timers.SetIdle(c.program.local.clock, &c.job, d) }})
}

// After runs f once after a time, as a message of its own: between other messages,
// with standing, and alone. An error means that the entity is not usable any more,
// as in Receive. A timer with the same name is replaced. The timers of an entity end
// when it stops, also when its shard moves. An appointment that must not be forgotten
// belongs into the entity's storage, from which Start sets the timer anew.
func (c *Context) After(name string, d time.Duration, f func(c *Context) error) {
	due := time.Now().Add(d)
	c.effects = append(c.effects, effect{timer: name, named: true, sets: true, do: func() {
		timers.Set(c.program.local.clock, &c.job, name, time.Until(due), f)
	}})
}

// CancelTimer cancels a timer that [Context.After] set: its function does not run after
// the call. It reports whether there was such a timer.
func (c *Context) CancelTimer(name string) (canceled bool) {
	if !c.hasTimer(name) {
		return false
	}
	c.effects = append(c.effects, effect{timer: name, named: true, do: func() { timers.Cancel(&c.job, name) }})
	return true
}

// effect is something that an entity has ordered during a call, and that happens when the call has returned without an
// error. So a refusal has nothing to undo.
type effect struct {
	timer string // The name of the timer that it sets or cancels.
	named bool   // It is about a timer with a name.
	sets  bool   // It sets that timer.
	do    func()
}

// settle has what the call has ordered happen, or drops it.
func (c *Context) settle(happens bool) {
	effects := c.effects
	c.effects = nil
	if happens {
		for _, e := range effects {
			e.do()
		}
	}
}

// refused takes an error that is a refusal for the outcome of the call.
func (c *Context) refused(r *RefusalError, err error) {
	c.effects, c.reply = nil, r.Reply
	if isNil(r.Reply) {
		c.reply = failure(detailOf(err))
	}
}

// hasTimer reports whether the entity has a timer with a name, counting what the call has ordered.
func (c *Context) hasTimer(name string) bool {
	for _, e := range slices.Backward(c.effects) {
		if e.named && e.timer == name {
			return e.sets
		}
	}
	return timers.Has(&c.job, name)
}

// LeaseToken returns the token of the lease under which the shard of the entity is hosted, higher for each holder;
// false without [WithLeases], and when the lease is just lost. A storage that refuses lower tokens than it has seen
// cannot be written by an earlier holder.
func (c *Context) LeaseToken() (uint64, bool) {
	return c.program.local.leases.Token(c.program.kind, c.job.Slot().Shard(), c.Epoch())
}
