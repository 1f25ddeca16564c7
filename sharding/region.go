// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/census"
	"github.com/quorate/quorate/sharding/internal/hosting"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/internal/telemetry"
)

// A message of this node, from Tell to its cell: Tell begins a span if there is a trace, send
// checks the message and hands it to the slot of its shard, in one of two ways. The short cut
// is for an entity of this node; by the long way, offer, the cell may want
// the message encoded first, or have no room for it at present. Ask is in ask.go, where it
// waits for the reply.

// Region is the way from one node to the entities of a kind, and this node's
// share of these entities.
type Region[C any] struct{ r *router }

// Tell sends a message to an entity. It returns when the message is accepted:
// an accepted message is handled once, or is reported in [System.Stats] when the host
// of the entity dies. While the mailbox of the entity is full, or too much is on its
// way to the shard, Tell waits. When ctx ends before there is room, the message was not
// accepted, and the error says what was full.
//
// The message is given away: nobody may change it after the call. An entity of this node gets
// the value itself, which is neither copied nor encoded, whatever its size.
//
// The deadline of ctx bounds the waiting only: an accepted message does not
// expire. With a ctx of [Context.Context] it waits for at most five seconds, so that
// entities which wait for each other's mailboxes do not wait for ever.
func (g *Region[C]) Tell(ctx context.Context, id string, message C) error {
	return g.r.tell(ctx, id, message)
}

// tell sends a message without waiting for a reply, within a span if ctx has a sampled one.
func (r *router) tell(ctx context.Context, id string, message any) error {
	if r.local.tracing.Absent() {
		return r.send(ctx, id, message, nil, nil)
	}
	parent := trace.SpanContextFromContext(ctx)
	if !parent.IsSampled() || r.local.tracing.Off() {
		return r.send(ctx, id, message, nil, r.local.tracing.Inject(ctx))
	}
	ctx, span := r.begin(ctx, telemetry.Producer, id, message)
	err := r.send(ctx, id, message, nil, r.local.tracing.Inject(ctx))
	fault, text := verdictOf(nil, err)
	r.finish(span, id, fault, text)
	return err
}

// begin begins the span of a sender.
func (r *router) begin(ctx context.Context, role telemetry.Role, id string, message any) (context.Context, trace.Span) {
	return r.program.spans.Begin(ctx, role, id, r.region.SlotOf(id).Shard().Index(), message, gossip.NodeID{})
}

// finish ends the span of a sender, with the home of the entity if it is known.
func (r *router) finish(span trace.Span, id, fault, text string) {
	var home gossip.NodeID
	if span.IsRecording() {
		home = r.region.SlotOf(id).Info().Home
	}
	r.program.spans.Finish(span, home, fault, text)
}

// send accepts a message. The ask that waits for the reply, and the trace context of the
// message, may be nil.
func (r *router) send(ctx context.Context, id string, message any, a *ask, trace []byte) error {
	if err := r.check(ctx, id, message); err != nil {
		return err
	}
	sl := r.region.SlotOf(id)
	if trace == nil {
		if a == nil && sl.Tell(id, message) || a != nil && sl.Ask(id, message, &a.Ask) {
			return nil
		}
	}
	m, buffer := sl.Blank(id, message, trace)
	if a != nil {
		m.Correlation, m.Deadline = a.Correlation, a.Deadline
	}
	return r.offer(ctx, sl, m, buffer, a)
}

// offer hands a message to its cell, and waits for room when there is none. After an error no cell has anything of it.
func (r *router) offer(ctx context.Context, sl *runtime.Slot, m *cell.Message, buffer []byte, a *ask) error {
	at, err := r.place(ctx, sl, m, buffer, a)
	if err != nil {
		at.Withdraw(m) // The cell may keep room for the message.
	}
	return err
}

// place does the work of offer, and returns the slot at which it ended: that of a retired shard sends the message to
// another one.
func (r *router) place(ctx context.Context, sl *runtime.Slot, m *cell.Message, buffer []byte, a *ask) (*runtime.Slot, error) {
	for {
		admission, waiter, why := sl.Offer(m, a.waiting())
		switch admission {
		case runtime.EncodeFirst:
			payload, err := r.encode(m.Entity, m.Value, buffer)
			if err != nil {
				return sl, err
			}
			m.Payload = payload
		case cell.Accepted:
			return sl, nil
		case cell.WindowFull, cell.MailboxFull:
			if err := r.await(ctx, sl, m, admission, waiter.(room), a); err != nil {
				return sl, err
			}
		case cell.Moved:
			sl = r.region.Next(m)
		case cell.Ended:
			return sl, r.notDelivered(m.Entity, "", ErrClosed)
		default:
			return sl, &MessageError{r.name, m.Entity, why, errorOf(admission.Code())}
		}
	}
}

// encode encodes a message to an entity for other nodes, into a buffer that may be nil; the result is not. The caller
// holds no lock, since the codec is code of the program.
func (r *router) encode(id string, message any, buffer []byte) ([]byte, error) {
	payload, err := r.program.codec.Append(buffer, message)
	switch {
	case err != nil:
		return nil, &MessageError{r.name, id, "the message cannot be encoded: " + err.Error(), ErrInvalid}
	case len(payload) > r.local.cfg.MaxMessageBytes:
		return nil, &MessageError{r.name, id, r.tooLarge(len(payload)), ErrInvalid}
	case payload == nil:
		payload = []byte{}
	}
	return payload, nil
}

// router is a [Region] without the type of its messages: it sends the messages of this node
// to the entities of a kind.
type router struct {
	local       *local
	program     *program // The code of the kind, for the entities of this node.
	region      *runtime.Region
	name        string
	none        any // The message that is nil.
	proxy       bool
	bound       string        // The role that hosts have; empty: any node may host.
	shards      int           // How many shards the kind had when it began here.
	asks        atomic.Uint64 // The last correlation that was given to an ask.
	verdict     atomic.Pointer[verdict]
	interval    time.Duration // How often the cells are swept.
	idleLimit   time.Duration // The kind's own time after which an idle entity is passivated; 0: the configured time.
	entityLimit int           // The kind's own limit of entities; 0: the configured one, below 0: none.

	// intervals carries a new sweep interval to the sweeper. Capacity one: only the latest
	// matters. Sent under System.mu.
	intervals chan time.Duration

	asked  telemetry.Asks
	census census.Kind
}

// check refuses ids and messages that no entity could get.
func (r *router) check(ctx context.Context, id string, message any) error {
	if fault := protocol.EntityFault(id); fault != "" {
		return &MessageError{r.name, protocol.Clip(id), fault, ErrInvalid}
	}
	if message == r.none {
		return &MessageError{r.name, id, "the message is nil", ErrInvalid}
	}
	if refused := r.refusal(); refused != nil {
		return refused
	}
	if ctx.Err() != nil {
		return r.notDelivered(id, "", context.Cause(ctx))
	}
	return nil
}

// CheckEntityID returns an error that wraps [ErrInvalid] if no entity can have an id: it has 1 to 512 bytes of UTF-8.
func CheckEntityID(id string) error {
	if fault := protocol.EntityFault(id); fault != "" {
		return fmt.Errorf("sharding: %s: %w", fault, ErrInvalid)
	}
	return nil
}

// tooLarge describes a message of too many bytes.
func (r *router) tooLarge(size int) string {
	return fmt.Sprintf("the message has %d bytes, sharding.max-message-bytes is %d", size, r.local.cfg.MaxMessageBytes)
}

// notDelivered is the error of a message that was not accepted.
func (r *router) notDelivered(id, detail string, cause error) error {
	return &MessageError{r.name, id, detail, severalOf(ErrNotDelivered, cause)}
}

// sweep looks at all entities of a kind at each interval until ctx ends: one timer
// serves all entities.
func (r *router) sweep(ctx context.Context) {
	every := r.interval
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case every = <-r.intervals:
		case <-timer.C:
		}
		r.region.Sweep(func() bool { return ctx.Err() != nil })
		timer.Reset(every)
	}
}

// verdict says whether the coordinator has accepted a region. A verdict is replaced by the
// next verdict and, but for the closing of its channels, never changed.
//
//	not known ──> accepted <──> refused
type verdict struct {
	accepted bool
	err      *SettingsError // Why the region is refused; nil while it is not.
	refused  chan struct{}  // Closed when the region is refused.
	over     chan struct{}  // Closed when another verdict has replaced this one.
}

func newVerdict() *verdict {
	return &verdict{refused: make(chan struct{}), over: make(chan struct{})}
}

// refuse notes that the coordinator refuses this region, which ends every wait of a
// sender: an ask that is not in its table yet looks at the verdict when it is. Only the
// driver's goroutine calls refuse and admit.
func (r *router) refuse(err *SettingsError) {
	next, old := newVerdict(), r.verdict.Load()
	next.err, next.refused = err, old.refused
	r.verdict.Store(next)
	if old.err == nil {
		close(old.refused)
	}
	close(old.over)
	r.region.EndAsks(err)
}

// admit notes that the coordinator has accepted this region, and takes a refusal back.
func (r *router) admit() {
	next, old := newVerdict(), r.verdict.Load()
	next.accepted = true
	if old.err == nil {
		next.refused = old.refused // Senders that wait by this channel hear of a later refusal.
	}
	r.verdict.Store(next)
	close(old.over)
}

// refusal returns why the region is refused, nil when it is not refused.
func (r *router) refusal() error {
	if err := r.verdict.Load().err; err != nil {
		return err
	}
	return nil
}

// Done is closed when the node has ended, and the region with it: nothing that is sent gets anywhere any more.
func (g *Region[C]) Done() <-chan struct{} { return g.r.local.ended }

// AwaitReady waits until a coordinator of the kind has accepted this node's region. From
// then on messages to entities of the kind find their way, as far as their shards have
// homes. It returns the [*SettingsError] of a coordinator that refuses the region, since its settings
// are not those of the other nodes; the error of ctx; or [ErrClosed] when the node ends.
//
// A region waits for its coordinator for as long as there is none: before the node is up,
// while a cluster forms, or while the coordinator moves. That is no reason to call a node
// not ready, since a rolling update may have to go on for the coordinator to come; see
// [System.Refused] for what is.
func (g *Region[C]) AwaitReady(ctx context.Context) error {
	for {
		v := g.r.verdict.Load()
		switch {
		case v.err != nil:
			return v.err
		case v.accepted:
			return nil
		}
		select {
		case <-v.over:
		case <-g.r.local.ended:
			return g.r.local.closed()
		case <-ctx.Done():
			return fmt.Errorf("sharding: no coordinator has accepted kind %q yet: %w", g.r.name, context.Cause(ctx))
		}
	}
}

// entityPatience is how long an entity that sends with its own context waits for room.
// Two entities that send to each other, each with a full mailbox, would wait for ever
// otherwise: neither handles a message while it waits.
const entityPatience = 5 * time.Second

// errEntityPatience is the cause when entityPatience has ended a wait for room.
var errEntityPatience = fmt.Errorf("an entity waits for room for %v at most", entityPatience)

// room is closed when there is room for a message.
type room chan struct{}

// Room wakes the sender that waits.
func (r room) Room() { close(r) }

// await waits until there is room for a message that the cell had no room for.
func (r *router) await(ctx context.Context, sl *runtime.Slot, m *cell.Message, full cell.Admission, room room, a *ask) error {
	var expired <-chan time.Time
	limit := errAskLimit
	switch {
	case a != nil && a.Limited:
		timer := time.NewTimer(a.Deadline.Sub(r.local.clock.Instant()))
		defer timer.Stop()
		expired = timer.C
	case a != nil:
	case hosting.IsEntity(ctx):
		timer := time.NewTimer(entityPatience)
		defer timer.Stop()
		expired, limit = timer.C, errEntityPatience
	}
	var cause error
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-expired:
		cause = limit
	case <-r.verdict.Load().refused:
		cause = r.refusal()
	}
	detail, why := r.whyFull(sl, full)
	return r.notDelivered(m.Entity, detail, severalOf(why, cause))
}

// whyFull says why a message found no room, as far as this node knows.
func (r *router) whyFull(sl *runtime.Slot, full cell.Admission) (detail string, why error) {
	info := sl.Info()
	home, where := info.Home, "here"
	silent := r.unreachable(info)
	switch {
	case home.IsZero():
		return "waited for room: the home of the shard is not known", nil
	case home == r.local.self && !r.local.standing.Held():
		return "waited for room: this node may not host at present", ErrNoStanding
	case home == r.local.self:
	case silent != nil:
		return "waited for room", silent
	default:
		where = "at " + home.String()
	}
	if full == cell.MailboxFull {
		return "waited for room: the mailbox of the entity is full " + where, ErrOverloaded
	}
	return fmt.Sprintf("waited for room: too much is on its way to %s", home), ErrOverloaded
}
