// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A message is checked and then takes one of two ways to its entity. The short cut, join,
// puts it into the mailbox of an entity of this node that is at work. The long way, offer,
// hands it to the cell of its shard, which may want it encoded first, or have no room for
// it at present.

// router is a [Region] without the type of its messages: the way to the entities of a
// kind, by a slot for each of its shards.
type router struct {
	system    *System
	name      string
	shards    uint32
	proxy     bool
	codec     Codec
	entity    behaviour
	slots     []slot
	asks      atomic.Uint64 // The last correlation that was given to an ask.
	verdict   atomic.Pointer[verdict]
	interval  time.Duration // How often the cells are swept.
	idleLimit time.Duration // The kind's own time after which an idle entity is passivated; 0: the configured time.

	// intervals carries a new sweep interval to the sweeper. Capacity one: only the latest
	// matters. Sent under System.mu.
	intervals chan time.Duration

	spans   spans
	success metric.MeasurementOption // The attributes of an ask that was answered.
}

// newRouter returns a router whose cells know no home yet.
func newRouter(s *System, cfg control.KindConfig, codec Codec, b behaviour, cells cell.Config) *router {
	r := &router{
		system: s, name: cfg.Name, shards: cfg.Settings.Shards, proxy: cfg.Proxy, codec: codec, entity: b,
		interval: sweepInterval(cells.PassivateAfter, cells.StuckAfter), intervals: make(chan time.Duration, 1),
		spans: spansOf(cfg.Name), success: with(attrKind.String(cfg.Name)),
	}
	r.verdict.Store(newVerdict())
	cells.Kind, cells.Self = r.name, s.self
	r.slots = make([]slot, r.shards)
	for i := range r.slots {
		r.slots[i].id = protocol.ShardID(i)
		cells.Shard = protocol.ShardID(i)
		r.slots[i].cell = cell.New(cells)
	}
	return r
}

// slotOf returns the slot of an entity's shard.
func (r *router) slotOf(id string) *slot { return &r.slots[protocol.ShardOf(id, r.shards)] }

// check refuses ids and messages that no entity could get, and returns the size of the
// message.
func (r *router) check(ctx context.Context, id string, message any) (size int, err error) {
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

// faultOf says what is wrong with an id; empty when the id is valid.
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
func (r *router) tooLarge(size int) string {
	return fmt.Sprintf("the message has %d bytes, sharding.max-message-bytes is %d", size, r.system.cfg.MaxMessageBytes)
}

// notDelivered is the error of a message that was not accepted.
func (r *router) notDelivered(id, detail string, cause error) error {
	return &MessageError{r.name, id, detail, severalOf(ErrNotDelivered, cause)}
}

// clip shortens an id for an error.
func clip(id string) string {
	if len(id) > 64 {
		return id[:64] + "..."
	}
	return id
}

// send accepts a message. The ask that waits for the reply, and the trace context of the
// message, may be nil.
func (r *router) send(ctx context.Context, id string, message any, a *ask, trace []byte) error {
	size, err := r.check(ctx, id, message)
	if err != nil {
		return err
	}
	sl := r.slotOf(id)
	if a == nil && trace == nil && !sl.away.Load() && r.join(sl, id, message, size) {
		return nil
	}
	m, buffer := r.blankMessage(sl, size)
	m.Kind, m.Shard, m.Entity, m.Value, m.Size = r.name, sl.id, id, message, size+len(id)+len(trace)
	m.Trace = trace
	if a != nil {
		m.Correlation, m.Deadline = a.correlation, a.deadline
	}
	err = r.offer(ctx, sl, m, buffer, a)
	if err != nil {
		r.withdraw(sl, m) // The cell may keep room for the message.
	}
	return err
}

// offer hands a message to its cell, and waits for room when there is none.
func (r *router) offer(ctx context.Context, sl *slot, m *cell.Message, buffer []byte, a *ask) error {
	for {
		admission, room, why := r.accept(sl, m, a)
		switch admission {
		case encodeFirst:
			if err := r.encode(m, buffer); err != nil {
				return err
			}
		case cell.Accepted:
			return nil
		case cell.WindowFull, cell.MailboxFull:
			if err := r.await(ctx, sl, m, admission, room, a); err != nil {
				return err
			}
		case cell.Ended:
			return r.notDelivered(m.Entity, "", ErrClosed)
		default:
			return &MessageError{r.name, m.Entity, why, errorOf(admission.Code())}
		}
	}
}

// join puts a message into the mailbox of an entity of this node that is at work: most
// messages of a busy sender find their entity so. It reports false when the message must
// take the long way.
func (r *router) join(sl *slot, id string, message any, size int) bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	e := sl.cell.Busy(id)
	if e == nil {
		return false
	}
	m := take(&sl.free.bare)
	if m == nil {
		m = r.system.messages.plain()
	}
	m.Kind, m.Shard, m.Entity, m.Value, m.Size = r.name, sl.id, id, message, size+len(id)
	sl.cell.Join(e, m)
	return true
}

// blankMessage returns an empty message, and a buffer for the encoding when the message
// will probably go to another node.
func (r *router) blankMessage(sl *slot, size int) (m *cell.Message, buffer []byte) {
	if !sl.away.Load() {
		return r.system.messages.plain(), nil
	}
	m = r.system.messages.packed(size)
	buffer, m.Payload = m.Payload, nil
	return m, buffer
}

// encode encodes a message for other nodes. The caller holds no lock, since the codec is
// code of the program.
func (r *router) encode(m *cell.Message, buffer []byte) error {
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

// encodeFirst says that a message was not handed to its cell, since the message is not
// encoded and may have to travel.
const encodeFirst cell.Admission = 0xff

// accept hands a message to its cell, once. The channel room, for a message that found
// none, is closed when there is room; why says why an entity fails its messages.
func (r *router) accept(sl *slot, m *cell.Message, a *ask) (admission cell.Admission, room <-chan struct{}, why string) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	local := sl.cell.Local()
	if sl.away.Load() == local {
		sl.away.Store(!local)
	}
	if m.Payload == nil && !local {
		return encodeFirst, nil, ""
	}
	if a != nil {
		sl.expect(a, m) // The ask must be in the table before its reply can come.
	}
	if !local {
		if r.collect(sl); sl.cell.Follow(m) {
			return cell.Accepted, nil, ""
		}
	}
	admission = sl.cell.Accept(r.system.clock.Instant(), m, &sl.out)
	if admission != cell.Accepted && a != nil {
		delete(sl.asks, a.correlation)
	}
	switch admission {
	case cell.WindowFull, cell.MailboxFull:
		room = sl.roomFor(m)
	case cell.EntityFailing:
		why = sl.cell.Reason(m.Entity)
	default:
	}
	r.carry(sl, nil)
	return admission, room, why
}
