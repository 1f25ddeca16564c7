// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/internal/telemetry"
)

// Messages that come encoded, from clients that are no members: EncodedOf finds the way, Ask and Tell
// send without waiting for anything, and Answer says what came of an ask. A message that finds no
// room at once is offered again by the function that Ask and Tell then return.

// Encoded is the way to the entities of a kind for messages that are encoded already, and whose types the
// caller does not know: for what passes messages on for others, such as module gateway. Its methods
// may be called from any goroutine.
type Encoded struct{ r *router }

// EncodedOf returns the way to the entities of a kind, nil if the kind does not run on the host.
func EncodedOf(h Host, kind string) *Encoded {
	r := h.Sharding().router(kind)
	if r == nil {
		return nil
	}
	return &Encoded{r}
}

// EncodedBytesMax returns how many bytes a message may have on a host.
func EncodedBytesMax(h Host) int { return h.Sharding().cfg.MaxMessageBytes }

// Answer is how an ask has ended.
type Answer struct {
	r     *router
	id    string
	began machine.Instant
	trace string // Of the client.
	reply *protocol.Reply
	back  bool  // Without a reply: the message was taken back.
	cause error // Without a reply: why.
	err   error // The message was not accepted.
}

// Append appends the encoded reply of the entity, or returns the error that [Ask] would return. It must
// not be called by the function that is given the answer, but by another goroutine, once.
func (a Answer) Append(dst []byte) ([]byte, error) {
	out, err := a.append(dst)
	if a.r.local.metrics.TimesAsks(a.r.local.ctx) {
		fault := ""
		if err != nil {
			fault = wordOfError(err)
		}
		a.r.asked.Asked(telemetry.WithClient(a.r.local.ctx, a.trace), a.r.local.clock.Instant().Sub(a.began), fault)
	}
	return out, err
}

// Bytes returns how much memory the encoded reply takes until it is appended; zero if the reply is of this
// node, and not encoded yet.
func (a Answer) Bytes() int {
	if a.reply == nil {
		return 0
	}
	return len(a.reply.Payload)
}

func (a Answer) append(dst []byte) ([]byte, error) {
	r := a.r
	switch {
	case a.err != nil:
		return dst, a.err
	case a.reply == nil && a.back:
		detail, why := r.stay(r.region.SlotOf(a.id))
		return dst, r.notDelivered(a.id, detail, severalOf(why, a.cause))
	case a.reply == nil:
		return dst, &MessageError{r.name, a.id, "no reply", severalOf(ErrUnknownOutcome, a.cause)}
	case a.reply.Code != protocol.CodeOK:
		return dst, &MessageError{Kind: r.name, Entity: a.id, Detail: a.reply.Detail, Err: errorOf(a.reply.Code)}
	case a.reply.Value == nil:
		return append(dst, a.reply.Payload...), nil
	}
	return a.encode(dst)
}

// encode appends the reply of an entity of this node.
func (a Answer) encode(dst []byte) (out []byte, err error) {
	r := a.r
	defer func() {
		if err != nil {
			out, err = dst, &MessageError{r.name, a.id, "the reply cannot be encoded: " + err.Error(), ErrEntityFailed}
		}
	}()
	defer r.program.recovered(nil, a.id, &err)
	out, err = r.program.codec.Append(dst, a.reply.Value)
	if n := len(out) - len(dst); err == nil && n > r.local.cfg.MaxMessageBytes {
		err = fmt.Errorf("it has %d bytes, sharding.max-message-bytes is %d", n, r.local.cfg.MaxMessageBytes)
	}
	return out, frozen(err)
}

// encodedAsk is an ask whose end is passed on.
type encodedAsk struct {
	ask

	r     *router
	id    string
	began machine.Instant
	trace string
	done  func(Answer)
}

// Answer takes the reply.
func (a *encodedAsk) Answer(reply *protocol.Reply) {
	a.done(Answer{r: a.r, id: a.id, began: a.began, trace: a.trace, reply: reply})
}

// End takes that the ask has ended without a reply.
func (a *encodedAsk) End(back bool, cause error) {
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	a.done(Answer{r: a.r, id: a.id, began: a.began, trace: a.trace, back: back, cause: cause})
}

// fail ends an ask whose message was not accepted.
func (a *encodedAsk) fail(err error) {
	a.done(Answer{r: a.r, id: a.id, began: a.began, trace: a.trace, err: err})
}

// Ask sends an encoded message, which belongs to this package from then on, and calls done once, on any goroutine, when
// there is a reply, or at the deadline. Done must return at once and call nothing of this package. The trace, which may
// be empty, is a traceparent of W3C, of up to 512 bytes.
//
// Ask waits for nothing. Where there is no room for the message at present it returns a function, which the
// caller calls on a goroutine of its own: that waits for room until the deadline, or until ctx ends. On a node without
// standing the ask ends at once with [ErrNoStanding]: the client can ask another node.
func (e *Encoded) Ask(ctx context.Context, id string, payload []byte, deadline time.Time, trace string, done func(Answer)) (wait func()) {
	r := e.r
	now := r.local.clock.Instant()
	a := &encodedAsk{r: r, id: id, began: now, trace: trace, done: done}
	a.Asker = a
	a.Renew(r.asks.Add(1))
	a.Deadline, a.Limited = max(now.Add(time.Until(deadline)), 1), true
	return e.send(ctx, id, payload, deadline, trace, &a.ask, func(err error) {
		if err != nil {
			a.fail(err)
			return
		}
		if refused := r.refusal(); refused != nil { // It may have come before the ask was in its table.
			if back, told := a.Retract(); !told {
				a.End(back, refused)
			}
		}
	})
}

// Tell sends an encoded message, as [Encoded.Ask] does, and calls done when it is accepted or not.
func (e *Encoded) Tell(ctx context.Context, id string, payload []byte, deadline time.Time, trace string, done func(error)) (wait func()) {
	return e.send(ctx, id, payload, deadline, trace, nil, done)
}

// send hands a message to its slot, and says by accepted what came of that.
func (e *Encoded) send(ctx context.Context, id string, payload []byte, deadline time.Time, trace string, a *ask, accepted func(error)) (wait func()) {
	r := e.r
	if err := e.check(ctx, id, payload, deadline, trace); err != nil {
		accepted(err)
		return nil
	}
	if payload == nil {
		payload = []byte{}
	}
	sl := r.region.SlotOf(id)
	var value any
	if !r.region.Away(sl) {
		value = r.program.decodeEarly(id, payload)
		if value != nil && trace == "" && (a == nil && sl.Tell(id, value) || a != nil && sl.Ask(id, value, &a.Ask)) {
			accepted(nil)
			return nil
		}
	}
	m, buffer := sl.Blank(id, value, telemetry.OfClient(trace))
	if m.Payload = payload; buffer != nil {
		m.Payload = append(buffer, payload...)
	}
	if a != nil {
		m.Correlation, m.Deadline = a.Correlation, a.Deadline
	}
	admission, waiter, why := sl.Offer(m, a.waiting())
	for admission == cell.Moved {
		sl = r.region.Next(m)
		admission, waiter, why = sl.Offer(m, a.waiting())
	}
	switch admission {
	case cell.Accepted:
		accepted(nil)
		return nil
	case cell.WindowFull, cell.MailboxFull:
		return func() { accepted(e.waitFor(ctx, sl, m, admission, waiter.(room), deadline, a)) }
	}
	sl.Withdraw(m)
	accepted(e.refused(id, admission, why))
	return nil
}

// waitFor waits for room for a message, and offers it again.
func (e *Encoded) waitFor(ctx context.Context, sl *runtime.Slot, m *cell.Message, full cell.Admission, room room, deadline time.Time, a *ask) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	if err := e.r.await(ctx, sl, m, full, room, a); err != nil {
		sl.Withdraw(m) // The cell may keep room for the message.
		return err
	}
	return e.r.offer(ctx, sl, m, nil, a)
}

// refused is the error of a message that its cell does not take.
func (e *Encoded) refused(id string, a cell.Admission, why string) error {
	if a == cell.Ended {
		return e.r.notDelivered(id, "", ErrClosed)
	}
	return &MessageError{e.r.name, id, why, errorOf(a.Code())}
}

// maxTraceBytes bounds the trace context of a message that comes encoded.
const maxTraceBytes = 512

// check refuses what no entity could get, and what another node may take.
func (e *Encoded) check(ctx context.Context, id string, payload []byte, deadline time.Time, trace string) error {
	r := e.r
	refuse := func(detail string) error { return &MessageError{r.name, protocol.Clip(id), detail, ErrInvalid} }
	if fault := protocol.EntityFault(id); fault != "" {
		return refuse(fault)
	}
	if len(payload) > r.local.cfg.MaxMessageBytes {
		return refuse(r.tooLarge(len(payload)))
	}
	if len(trace) > maxTraceBytes {
		return refuse(fmt.Sprintf("the trace has %d bytes, at most %d are possible", len(trace), maxTraceBytes))
	}
	if refused := r.refusal(); refused != nil {
		return r.notDelivered(id, "", refused)
	}
	if time.Until(deadline) <= 0 {
		return &MessageError{r.name, id, "it had passed when the message came", ErrExpired}
	}
	if ctx.Err() != nil {
		return r.notDelivered(id, "", context.Cause(ctx))
	}
	if !r.local.standing.Held() {
		return r.notDelivered(id, "this node may not host at present", ErrNoStanding)
	}
	return nil
}

// Place is where the shard of an entity lives, as far as a node knows.
type Place struct {
	Shard, Shards int
	Home          gossip.NodeID // The zero value: not known at present.
}

// Elsewhere returns the place of an entity whose shard does not live on this node, as far as it is known; false
// if it lives here or its home is not known.
func (e *Encoded) Elsewhere(id string) (Place, bool) {
	sl := e.r.region.SlotOf(id)
	if !e.r.region.Away(sl) {
		return Place{}, false
	}
	home := sl.Info().Home
	return Place{Shard: int(sl.Shard()), Shards: e.r.region.Shards(), Home: home}, !home.IsZero() && home != e.r.local.self
}
