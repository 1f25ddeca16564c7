// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/census"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/hosting"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/internal/storecalls"
	"github.com/quorate/quorate/sharding/internal/telemetry"
	"github.com/quorate/quorate/sharding/remember"
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
// accepted, and the error says what was full. Nobody may change the message after the
// call.
//
// The deadline of ctx bounds the waiting only: an accepted message does not
// expire. With a ctx of [Context.Context] it waits for at most five seconds, so that
// entities which wait for each other's mailboxes do not wait for ever.
func (g *Region[C]) Tell(ctx context.Context, id string, message C) error {
	return g.r.tell(ctx, id, message)
}

// tell sends a message without waiting for a reply, within a span if ctx has a sampled one.
func (r *router) tell(ctx context.Context, id string, message any) error {
	if r.system.tracing.Absent() {
		return r.send(ctx, id, message, nil, nil)
	}
	parent := trace.SpanContextFromContext(ctx)
	if !parent.IsSampled() || r.system.tracing.Off() {
		return r.send(ctx, id, message, nil, telemetry.Traceparent(parent))
	}
	ctx, span := r.begin(ctx, id, &r.program.spans.Producer)
	err := r.send(ctx, id, message, nil, telemetry.Traceparent(span.SpanContext()))
	fault, text := verdictOf(nil, err)
	telemetry.Finish(span, fault, text)
	return err
}

// begin begins a span about an entity.
func (r *router) begin(ctx context.Context, id string, role *telemetry.Template) (context.Context, trace.Span) {
	return r.program.spans.Begin(ctx, id, r.region.SlotOf(id).Shard().Index(), role)
}

// send accepts a message. The ask that waits for the reply, and the trace context of the
// message, may be nil.
func (r *router) send(ctx context.Context, id string, message any, a *ask, trace []byte) error {
	size, err := r.check(ctx, id, message)
	if err != nil {
		return err
	}
	sl := r.region.SlotOf(id)
	if trace == nil {
		if a == nil && sl.Tell(id, message) || a != nil && sl.Ask(id, message, &a.Ask) {
			return nil
		}
	}
	m, buffer := sl.Blank(id, message, size, trace)
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
			if err := r.encode(m, buffer); err != nil {
				return sl, err
			}
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

// encode encodes a message for other nodes. The caller holds no lock, since the codec is
// code of the program.
func (r *router) encode(m *cell.Message, buffer []byte) error {
	payload, err := r.program.codec.Append(buffer, m.Value)
	switch {
	case err != nil:
		return &MessageError{r.name, m.Entity, "the message cannot be encoded: " + err.Error(), ErrInvalid}
	case len(payload) > r.system.cfg.MaxMessageBytes:
		return &MessageError{r.name, m.Entity, r.tooLarge(len(payload)), ErrInvalid}
	case payload == nil:
		payload = []byte{}
	}
	m.Payload = payload
	return nil
}

// router is a [Region] without the type of its messages: it sends the messages of this node
// to the entities of a kind.
type router struct {
	system      *System
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

// newRouter returns a router whose cells know no home yet. Nil ids: entities are not remembered.
func newRouter(s *System, cfg control.KindConfig, codec Codec, b behaviour, ids remember.Store, cells cell.Config) *router {
	p := &program{system: s, kind: cfg.Name, codec: codec, entity: b, spans: s.tracing.NewKind(cfg.Name, s.self.String()), checker: EntityChecker(nil)}
	ports := runtime.KindPorts{
		Work:   func(t runtime.Task) { s.pool.Put(job{of: p, task: t}, t.Class()) },
		Decode: p.decodeEarly,
		Ended:  func(sl *runtime.Slot) { hosting.EndShard(p.region, sl) },
	}
	var calls *storecalls.Calls
	if ids != nil {
		calls = storecalls.New(storecalls.Config{Kind: cfg.Name, Store: ids, Limit: s.cfg.Remember.CallTimeout, Log: s.log, Node: s.storePorts()})
		ports.Store, ports.Recall = calls, s.latest.Remember.desk(cells.RememberFirst)
	}
	p.region = s.runtime.NewRegion(cfg.Name, cfg.Settings.Shards, cells, ports)
	if calls != nil {
		calls.For(p.region) // No cell knows a home yet.
	}
	r := &router{
		system: s, program: p, region: p.region, name: cfg.Name, none: b.none(), proxy: cfg.Proxy, bound: cfg.Settings.Role,
		shards:   int(cfg.Settings.Shards),
		interval: runtime.SweepInterval(cells.PassivateAfter, cells.StuckAfter), intervals: make(chan time.Duration, 1),
		asked:  s.metrics.NewAsks(cfg.Name),
		census: census.Kind{Name: cfg.Name, Region: p.region, Proxy: cfg.Proxy, Leases: s.leases, Decode: p.decode, Wall: s.wall},
	}
	r.verdict.Store(newVerdict())
	return r
}

// check refuses ids and messages that no entity could get, and returns the size of the
// message.
func (r *router) check(ctx context.Context, id string, message any) (size int, err error) {
	refuse := func(detail string) (int, error) {
		return 0, &MessageError{r.name, protocol.Clip(id), detail, ErrInvalid}
	}
	if fault := protocol.EntityFault(id); fault != "" {
		return refuse(fault)
	}
	if message == r.none {
		return refuse("the message is nil")
	}
	if size = max(r.program.codec.Size(message), 0); size > r.system.cfg.MaxMessageBytes {
		return refuse(r.tooLarge(size))
	}
	if refused := r.refusal(); refused != nil {
		return 0, refused
	}
	if ctx.Err() != nil {
		return 0, r.notDelivered(id, "", context.Cause(ctx))
	}
	return size, nil
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
	return fmt.Sprintf("the message has %d bytes, sharding.max-message-bytes is %d", size, r.system.cfg.MaxMessageBytes)
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
