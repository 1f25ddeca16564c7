// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/internal/telemetry"
)

// An ask, from Ask to its reply: ask begins a span, exchange sends the message by send, of
// region.go, with an ask that waits in the table of its slot, and waits until the runtime has
// told how the ask ended, or the context of the caller has. Then the message is taken back if
// that is possible; stay and unreachable say what it had waited for.

// askTimeout bounds an ask whose context has no deadline.
const askTimeout = time.Minute

// errAskLimit is the cause when askTimeout has ended an ask.
var errAskLimit = errors.New("no answer within a minute")

// ask is one wait for a reply, with what its goroutine waits on. The runtime tells an ask
// that it takes out of its table how the ask has ended, once, and nothing of one that its own
// goroutine has taken out. So told is empty when the goroutine has gone on, and the ask can
// be used again.
type ask struct {
	runtime.Ask

	told chan struct{} // Has one token when the fields below are written. Capacity one.

	reply *protocol.Reply // Nil: the ask has ended without a reply.
	back  bool            // Without a reply: the message was taken back.
	cause error           // Without a reply: why.
}

// newAsk returns an ask that is in no table.
func (r *router) newAsk() *ask {
	a, _ := r.local.asks.Get().(*ask)
	if a == nil {
		a = &ask{told: make(chan struct{}, 1)}
		a.Asker = a
	}
	a.Renew(r.asks.Add(1))
	return a
}

// Answer takes the reply.
func (a *ask) Answer(reply *protocol.Reply) {
	a.reply = reply
	a.told <- struct{}{}
}

// End takes that the ask has ended without a reply.
func (a *ask) End(back bool, cause error) {
	if cause == nil {
		cause = errAskLimit
	}
	a.back, a.cause = back, cause
	a.told <- struct{}{}
}

// waiting returns what the table of asks keeps of an ask; nil for none.
func (a *ask) waiting() *runtime.Ask {
	if a == nil {
		return nil
	}
	return &a.Ask
}

// until sets the deadline of an ask to that of ctx; when ctx has none, the runtime ends the
// ask after askTimeout.
func (a *ask) until(ctx context.Context, now machine.Instant) {
	if deadline, ok := ctx.Deadline(); ok {
		a.Deadline = max(now.Add(time.Until(deadline)), 1) // Zero would say that there is none.
		return
	}
	a.Deadline, a.Limited = now.Add(askTimeout), true
}

// over puts an ask that has ended into the pool.
func (r *router) over(a *ask) {
	a.reply, a.back, a.cause = nil, false, nil
	r.local.asks.Put(a)
}

// Ask sends a message to an entity of g and waits for its reply, which must be an R: a pointer type that the kind's
// codec can decode. A reply of another type is [ErrInvalid] if the entity lives on this node. From another node come
// bytes, and the codec decides: [Protobuf] may take those of another message for an R whose fields are not set. The ask
// ends with ctx, and after a minute when ctx has no deadline; the entity does not begin the message after that. The
// error wraps one of the sentinels in errors.go, which say whether the message may have been handled; a [MessageError]
// names the entity.
func Ask[R, C any](ctx context.Context, g *Region[C], id string, message C) (R, error) {
	var none R
	if t := reflect.TypeFor[R](); t.Kind() != reflect.Pointer {
		return none, &MessageError{g.r.name, protocol.Clip(id), fmt.Sprintf("replies are pointers, asked for %s", t), ErrInvalid}
	}
	reply, err := g.r.ask(ctx, id, message)
	if err != nil {
		return none, err
	}
	return replyAs[R](g.r, id, reply)
}

// replyAs turns the reply of an entity into an R, or its code into an error.
func replyAs[R any](r *router, id string, reply *protocol.Reply) (R, error) {
	var none R
	if reply.Code != protocol.CodeOK {
		return none, &MessageError{Kind: r.name, Entity: id, Detail: reply.Detail, Err: errorOf(reply.Code)}
	}
	t := reflect.TypeFor[R]()
	if reply.Value != nil {
		value, ok := reply.Value.(R)
		if !ok {
			return none, &MessageError{r.name, id, fmt.Sprintf("the reply is a %T, asked for %s", reply.Value, t), ErrInvalid}
		}
		return value, nil
	}
	value := reflect.New(t.Elem()).Interface()
	if err := r.program.codec.Decode(reply.Payload, value); err != nil {
		return none, &MessageError{r.name, id, "reply: " + err.Error(), ErrInvalid}
	}
	return value.(R), nil
}

// ask sends a message and waits for the reply, within a span and with the time measured.
func (r *router) ask(ctx context.Context, id string, message any) (*protocol.Reply, error) {
	var span trace.Span // Nil when no provider takes spans.
	var parent []byte
	switch {
	case r.local.tracing.Absent():
	case r.local.tracing.Off():
		parent = r.local.tracing.Inject(ctx)
	default:
		ctx, span = r.begin(ctx, telemetry.Client, id, message)
		parent = r.local.tracing.Inject(ctx)
	}
	var began machine.Instant
	timed := r.local.metrics.TimesAsks(ctx)
	if timed {
		began = r.local.clock.Instant()
	}
	reply, err := r.exchange(ctx, id, message, parent)
	if timed || span != nil {
		fault, text := verdictOf(reply, err)
		if timed {
			r.asked.Asked(ctx, r.local.clock.Instant().Sub(began), fault)
		}
		if span != nil {
			r.finish(span, id, fault, text)
		}
	}
	return reply, err
}

// exchange sends a message and waits for its reply.
func (r *router) exchange(ctx context.Context, id string, message any, trace []byte) (*protocol.Reply, error) {
	if r.program.asksItself(ctx, id) {
		return nil, &MessageError{r.name, protocol.Clip(id), "", severalOf(ErrAskedItself, ErrNotDelivered)}
	}
	a := r.newAsk()
	defer r.over(a)
	a.until(ctx, r.local.clock.Instant())
	if err := r.send(ctx, id, message, a, trace); err != nil {
		return nil, err
	}
	if refused := r.refusal(); refused != nil { // It may have come before the ask was in its table.
		r.retract(a, refused)
	} else if done := ctx.Done(); done == nil {
		<-a.told
	} else {
		select {
		case <-a.told:
		case <-done:
			r.retract(a, context.Cause(ctx))
		}
	}
	switch {
	case a.reply != nil:
		return a.reply, nil
	case a.back:
		detail, why := r.stay(r.region.SlotOf(id))
		return nil, r.notDelivered(id, detail, severalOf(why, a.cause))
	default:
		return nil, &MessageError{r.name, id, "no reply", severalOf(ErrUnknownOutcome, a.cause)}
	}
}

// retract ends an ask that does not wait any longer, unless the runtime has told how it ended.
func (r *router) retract(a *ask, cause error) {
	back, told := a.Retract()
	if told {
		<-a.told // The runtime was faster.
		return
	}
	a.back, a.cause = back, cause
}

// stay says what a message that was taken back had waited for on this node, as far as
// this node knows.
func (r *router) stay(sl *runtime.Slot) (detail string, why error) {
	info := sl.Info()
	home := info.Home
	gone := !home.IsZero() && r.local.node.State().Member(home) == nil
	if none := r.unhosted(); none != nil && (home.IsZero() || gone) {
		return "waited for a home", none
	}
	switch {
	case home.IsZero():
		return "waited for a home: the home of the shard is not known", nil
	case gone:
		return "waited for a new home: " + home.String() + " is no member any more", nil
	case home == r.local.self && !r.local.standing.Held():
		return "waited for its turn: this node may not host at present", ErrNoStanding
	case home == r.local.self:
		return "waited for its turn: its entity had not begun it", nil
	default:
		return "waited for a connection to " + home.String(), r.unreachable(info)
	}
}

// unhosted returns that no node can host shards of the kind, nil if one can, or comes.
func (r *router) unhosted() error {
	if r.bound == "" || protocol.AnyHasRole(r.local.node.State(), r.bound) {
		return nil
	}
	return &NoHostError{Kind: r.name, Role: r.bound}
}

// unreachable returns why no message reaches the home of a shard; nil unless members have
// found the home unreachable.
func (r *router) unreachable(info cell.Info) error {
	state := r.local.node.State()
	if state.Reachable(info.Home) {
		return nil
	}
	return &UnreachableError{
		Home: info.Home, Since: r.local.wall(info.Moved), Observers: state.Observers(info.Home),
	}
}
