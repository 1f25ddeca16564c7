// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Region is the way from one node to the entities of a kind, and this node's
// share of them.
type Region[C any] struct{ r *region }

// Tell sends a message to an entity. It returns when the message is accepted:
// it will be handled once, or is reported in [System.Stats] when its host
// dies. It waits until ctx ends while the mailbox of the entity is full, or too
// much is on its way to its shard; then the message was not accepted, and the error
// says what there was no room in. The message must not be changed any more.
//
// The deadline of ctx bounds the waiting only: an accepted message does not
// expire. With a ctx of [Context.Context] it waits for at most five seconds, so that
// entities which wait for each other's mailboxes do not wait for ever.
func (g *Region[C]) Tell(ctx context.Context, id string, message C) error {
	return g.r.tell(ctx, id, message)
}

// Ask sends a message to an entity of g and waits for its reply, which must be
// an R: a pointer type that the kind's codec can decode. It ends with ctx, and
// after a minute when ctx has no deadline; the entity does not begin the message after
// that. The error wraps one of those in errors.go, which say whether the message may
// have been handled; a [MessageError] says which entity it is about.
func Ask[R, C any](ctx context.Context, g *Region[C], id string, message C) (R, error) {
	var none R
	if t := reflect.TypeFor[R](); t.Kind() != reflect.Pointer {
		return none, &MessageError{g.r.name, clip(id), fmt.Sprintf("replies are pointers, asked for %s", t), ErrInvalid}
	}
	reply, err := g.r.ask(ctx, id, message)
	if err != nil {
		return none, err
	}
	return replyAs[R](g.r, id, reply)
}

// replyAs turns the answer into what the caller wants.
func replyAs[R any](r *region, id string, reply *protocol.Reply) (R, error) {
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
	if err := r.codec.Decode(reply.Payload, value); err != nil {
		return none, &MessageError{r.name, id, "reply: " + err.Error(), ErrInvalid}
	}
	return value.(R), nil
}

// region is a [Region] without the type of its messages.
type region struct {
	system  *System
	name    string
	shards  uint32
	proxy   bool
	codec   Codec
	entity  behaviour
	cells   []cell
	asks    atomic.Uint64 // The last correlation.
	verdict atomic.Pointer[verdict]
	every   time.Duration // How often the cells are swept.
	own     time.Duration // The time of the kind after which entities are passivated; 0: the configured one.

	paces chan time.Duration // Another time for every. It holds one, the latest; sent under the system's lock.

	spans   spans
	success metric.MeasurementOption // The attributes of an ask that was answered.
}

// newRegion returns a region whose cells know nothing yet.
func newRegion(s *System, cfg protocol.KindConfig, codec Codec, b behaviour, cells protocol.CellConfig) *region {
	r := &region{
		system: s, name: cfg.Name, shards: cfg.Settings.Shards, proxy: cfg.Proxy, codec: codec, entity: b,
		every: sweepInterval(cells.PassivateAfter, cells.StuckAfter), paces: make(chan time.Duration, 1),
		spans: spansOf(cfg.Name), success: with(attrKind.String(cfg.Name)),
	}
	r.verdict.Store(newVerdict())
	cells.Kind, cells.Self = r.name, s.self
	r.cells = make([]cell, r.shards)
	for i := range r.cells {
		r.cells[i].id = protocol.ShardID(i)
		cells.Shard = protocol.ShardID(i)
		r.cells[i].shard = protocol.NewCell(cells)
	}
	return r
}

// cellOf returns the cell of an entity's shard.
func (r *region) cellOf(id string) *cell { return &r.cells[protocol.ShardOf(id, r.shards)] }

// check refuses ids and messages that no entity could get.
func (r *region) check(ctx context.Context, id string, message any) (size int, err error) {
	refuse := func(detail string) (int, error) { return 0, &MessageError{r.name, clip(id), detail, ErrInvalid} }
	if fault := faultOf(id); fault != "" {
		return refuse(fault)
	}
	if isNil(message) {
		return refuse("the message is nil")
	}
	if size = r.codec.Size(message); size > r.system.cfg.MaxMessageBytes {
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

// faultOf says what is wrong with an id; empty when nothing is.
func faultOf(id string) string {
	switch {
	case id == "":
		return "the id is empty"
	case len(id) > protocol.MaxEntityBytes:
		return fmt.Sprintf("the id has %d bytes, at most %d are possible", len(id), protocol.MaxEntityBytes)
	case !utf8.ValidString(id):
		return "the id is not valid UTF-8"
	default:
		return ""
	}
}

// tooLarge describes a message of too many bytes.
func (r *region) tooLarge(size int) string {
	return fmt.Sprintf("the message has %d bytes, sharding.max-message-bytes is %d", size, r.system.cfg.MaxMessageBytes)
}

// notDelivered is the error of a message that was not accepted.
func (r *region) notDelivered(id, detail string, cause error) error {
	return &MessageError{r.name, id, detail, severalOf(ErrNotDelivered, cause)}
}

// clip shortens an id for an error.
func clip(id string) string {
	if len(id) > 64 {
		return id[:64] + "..."
	}
	return id
}

// send accepts a message, with the ask that waits for its reply and the trace that
// it belongs to, if any.
func (r *region) send(ctx context.Context, id string, message any, a *ask, trace []byte) error {
	size, err := r.check(ctx, id, message)
	if err != nil {
		return err
	}
	c := r.cellOf(id)
	if a == nil && trace == nil && !c.away.Load() && r.join(c, id, message, size) {
		return nil
	}
	m, buffer := r.blankMessage(c, size)
	m.Kind, m.Shard, m.Entity, m.Value, m.Size = r.name, c.id, id, message, size+len(id)+len(trace)
	m.Trace = trace
	if a != nil {
		m.Correlation, m.Deadline = a.correlation, a.deadline
	}
	err = r.offer(ctx, c, m, buffer, a)
	if err != nil {
		r.withdraw(c, m) // Room may be kept for it.
	}
	return err
}

// offer hands a message to its cell, waiting for room as long as there is none.
func (r *region) offer(ctx context.Context, c *cell, m *protocol.Message, buffer []byte, a *ask) error {
	for {
		admission, room, why := r.accept(c, m, a)
		switch admission {
		case encodeFirst:
			if err := r.encode(m, buffer); err != nil {
				return err
			}
		case protocol.Accepted:
			return nil
		case protocol.WindowFull, protocol.MailboxFull:
			if err := r.await(ctx, c, m, admission, room, a); err != nil {
				return err
			}
		case protocol.Ended:
			return r.notDelivered(m.Entity, "", ErrClosed)
		default:
			return &MessageError{r.name, m.Entity, why, errorOf(admission.Code())}
		}
	}
}

// blankMessage returns an empty message, and a buffer for its encoding when it
// will probably go to another node.
func (r *region) blankMessage(c *cell, size int) (m *protocol.Message, buffer []byte) {
	if !c.away.Load() {
		return r.system.messages.plain(), nil
	}
	m = r.system.messages.packed(size)
	buffer, m.Payload = m.Payload, nil
	return m, buffer
}

// encode encodes a message for other nodes. It is called without any lock,
// since the codec is the program's.
func (r *region) encode(m *protocol.Message, buffer []byte) error {
	payload, err := r.codec.Append(buffer, m.Value)
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

// encodeFirst says that a message was not handed to its cell, since it may have to
// travel and is not encoded.
const encodeFirst protocol.Admission = 0xff

// accept hands a message to its cell, once. Room is closed when there is room for a
// message that found none; why says why an entity fails its messages.
func (r *region) accept(c *cell, m *protocol.Message, a *ask) (admission protocol.Admission, room <-chan struct{}, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	local := c.shard.Local()
	if c.away.Load() == local {
		c.away.Store(!local)
	}
	if m.Payload == nil && !local {
		return encodeFirst, nil, ""
	}
	if a != nil {
		c.expect(a, m) // Before the reply can come.
	}
	if !local {
		if r.collect(c); c.shard.Follow(m) {
			return protocol.Accepted, nil, ""
		}
	}
	admission = c.shard.Accept(r.system.clock.Instant(), m, &c.out)
	if admission != protocol.Accepted && a != nil {
		delete(c.asks, a.correlation)
	}
	switch admission {
	case protocol.WindowFull, protocol.MailboxFull:
		room = c.await(m)
	case protocol.EntityFailing:
		why = c.shard.Reason(m.Entity)
	default:
	}
	r.carry(c, nil)
	return admission, room, why
}
