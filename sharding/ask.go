// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// askLimit bounds an ask whose context has no deadline.
const askLimit = time.Minute

// errAskLimit is the cause when askLimit has ended an ask.
var errAskLimit = errors.New("no answer within a minute")

// ask is one wait for a reply. It is in the table of its cell from before the message is
// accepted until the reply comes or the asker stops waiting. Only the goroutine that takes
// the ask out of the table may send to its channel, so that an ask that is over can be used
// again.
type ask struct {
	correlation uint64
	deadline    machine.Instant
	delivered   bool                 // The home has the message, or the message came to its end. Guarded by the slot's lock.
	message     *cell.Message        // The message that was asked, until it is delivered. Guarded by the slot's lock.
	homes       uint64               // The number of the home to which the message goes first, see [cell.Cell.Homes]. Guarded by the slot's lock.
	early       []early              // Replies from nodes that are not known as homes yet. Guarded by the slot's lock.
	reply       chan *protocol.Reply // Carries the reply. Capacity one: an ask gets one reply at most.
	limit       *time.Timer          // The timer of askLimit; made at first use.
	expired     <-chan time.Time     // The channel of limit, when the asker's context has no deadline; else nil.
}

// newAsk returns an ask that is in no table.
func (r *router) newAsk() *ask {
	a, _ := r.system.askPool.Get().(*ask)
	if a == nil {
		a = &ask{reply: make(chan *protocol.Reply, 1)}
	}
	a.correlation, a.delivered, a.message, a.early = r.asks.Add(1), false, nil, nil
	return a
}

// until sets the deadline of an ask to that of ctx; when ctx has none, the ask ends after
// askLimit.
func (a *ask) until(ctx context.Context, now machine.Instant) {
	if deadline, ok := ctx.Deadline(); ok {
		// A deadline is never zero, which would say that there is none.
		a.deadline, a.expired = max(now.Add(time.Until(deadline)), 1), nil
		return
	}
	a.deadline = now.Add(askLimit)
	if a.limit == nil {
		a.limit = time.NewTimer(askLimit)
	} else {
		a.limit.Reset(askLimit)
	}
	a.expired = a.limit.C
}

// over puts an ask that has ended into the pool.
func (r *router) over(a *ask) {
	if a.expired != nil {
		a.limit.Stop()
	}
	r.system.askPool.Put(a)
}

// exchange sends a message and waits for its reply.
func (r *router) exchange(ctx context.Context, id string, message any, trace []byte) (*protocol.Reply, error) {
	if r.asksItself(ctx, id) {
		return nil, &MessageError{r.name, clip(id), "", severalOf(ErrAskedItself, ErrNotDelivered)}
	}
	a := r.newAsk()
	defer r.over(a)
	a.until(ctx, r.system.clock.Instant())
	if err := r.send(ctx, id, message, a, trace); err != nil {
		return nil, err
	}
	var cause error
	select {
	case reply := <-a.reply:
		return reply, nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-a.expired:
		cause = errAskLimit
	case <-r.verdict.Load().refused:
		cause = r.refusal()
	}
	sl := r.slotOf(id)
	if r.retract(sl, a) {
		detail, why := r.stay(sl)
		return nil, r.notDelivered(id, detail, severalOf(why, cause))
	}
	select {
	case reply := <-a.reply: // The reply came while retract looked for the ask.
		return reply, nil
	default:
		return nil, &MessageError{r.name, id, "no reply", severalOf(ErrUnknownOutcome, cause)}
	}
}

// stay says what a message that was taken back had waited for on this node, as far as
// this node knows.
func (r *router) stay(sl *slot) (detail string, why error) {
	info := sl.info()
	switch home := info.Home; {
	case home.IsZero():
		return "waited for a home: the home of the shard is not known", nil
	case home == r.system.self && !r.system.standing.Held():
		return "waited for its turn: this node may not host at present", ErrNoStanding
	case home == r.system.self:
		return "waited for its turn: its entity had not begun it", nil
	default:
		return "waited for a connection to " + home.String(), r.unreachable(info)
	}
}

// unreachable returns why no message reaches the home of a shard; nil unless members have
// found the home unreachable.
func (r *router) unreachable(info cell.Info) error {
	state := r.system.node.State()
	if state.Reachable(info.Home) {
		return nil
	}
	return &UnreachableError{
		Home: info.Home, Since: r.system.wall(info.Moved), Observers: state.Observers(info.Home),
	}
}
