// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/optional"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/internal/telemetry"
)

// What a program writes, and what an entity sees: first the interfaces of an entity, Entity with the optional Starter
// and Stopper (Snapshotter is in snapshot.go), and the reasons of a stop; then Context, by which an entity learns of
// its place, replies and passivates itself.

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

// returned ends the turn: the entity's method has returned.
func (c *Context) returned() {
	if c.turn != nil {
		c.turn.over.Store(true)
		c.turn = nil
	}
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
func (c *Context) Node() gossip.NodeID { return c.program.system.self }

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
	return context.WithValue(c.within(c.program.system.contexts.Of(c.program.region, c.job.Slot(), c.job.Entity())), turnKey{}, c.turn)
}

// within returns a context with the trace of the message that is being handled.
func (c *Context) within(ctx context.Context) context.Context {
	switch {
	case c.span != nil:
		return trace.ContextWithSpan(ctx, c.span)
	case len(c.job.Mail().Trace()) > 0:
		return telemetry.Remote(ctx, c.job.Mail().Trace())
	default:
		return ctx
	}
}

// StopReason says why the entity is stopped, during its Stop; [StopNone] otherwise.
func (c *Context) StopReason() StopReason { return c.stop }

// Passivate stops the entity as soon as no message waits for it, so that it uses
// no memory; the next message starts it again. No message is lost or overtaken:
// messages that come meanwhile are handled before the stop or after the next start.
func (c *Context) Passivate() {
	c.effects = append(c.effects, effect{do: func() {
		c.job.Slot().Step(func(in *cell.Cell, out *cell.Actions) {
			in.Passivate(c.program.system.clock.Instant(), c.job.Entity(), out)
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
