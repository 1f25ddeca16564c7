// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/quorate/quorate/membership/machine"
	"github.com/quorate/quorate/sharding/protocol"
)

// Region is the way from one node to the entities of a kind, and this node's
// share of them.
type Region[C any] struct{ r *region }

// Tell sends a message to an entity. It returns when the message is accepted:
// it will be handled once, or is reported in [System.Stats] when its host
// dies. It waits until ctx ends while too much is on its way to the entity's
// shard. The message must not be changed any more.
func (g *Region[C]) Tell(ctx context.Context, id string, message C) error {
	return g.r.send(ctx, id, message, nil)
}

// Ask sends a message to an entity of g and waits for its reply, which must be
// an R: a pointer type that the kind's codec can decode. It ends with ctx, and
// after a minute when ctx has no deadline. The error wraps one of those in
// errors.go; a [MessageError] says which entity it is about.
func Ask[R, C any](ctx context.Context, g *Region[C], id string, message C) (R, error) {
	var none R
	a, err := g.r.ask(ctx, id, message)
	if err != nil {
		return none, err
	}
	return replyAs[R](g.r, id, a)
}

// replyAs turns the answer into what the caller wants.
func replyAs[R any](r *region, id string, reply *protocol.Reply) (R, error) {
	var none R
	if reply.Code != protocol.CodeOK {
		return none, &MessageError{Kind: r.name, Entity: id, Detail: reply.Detail, Err: reply.Code.Err()}
	}
	t := reflect.TypeFor[R]()
	if reply.Value != nil {
		value, ok := reply.Value.(R)
		if !ok {
			return none, &MessageError{r.name, id, fmt.Sprintf("the reply is a %T, asked for %s", reply.Value, t), ErrInvalid}
		}
		return value, nil
	}
	if t.Kind() != reflect.Pointer {
		return none, &MessageError{r.name, id, fmt.Sprintf("replies are pointers, asked for %s", t), ErrInvalid}
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
	codec   Codec
	entity  behaviour
	cells   []cell
	refused atomic.Pointer[SettingsError]
	asks    atomic.Uint64 // The last correlation.
}

// newRegion returns a region whose cells know nothing yet.
func newRegion(s *System, cfg protocol.KindConfig, codec Codec, b behaviour) *region {
	r := &region{system: s, name: cfg.Name, shards: cfg.Settings.Shards, codec: codec, entity: b}
	r.cells = make([]cell, r.shards)
	for i := range r.cells {
		r.cells[i].init(protocol.NewShard(protocol.ShardConfig{
			Kind: r.name, Shard: protocol.ShardID(i), Self: s.self,
			WindowBytes: s.cfg.WindowBytes, TransitBytes: s.cfg.TransitBytes, Mailbox: s.cfg.MailboxSize,
			BackoffMin: s.cfg.EntityRestartBackoff, BackoffMax: 30 * s.cfg.EntityRestartBackoff,
		}), protocol.ShardID(i))
	}
	return r
}

// check refuses ids and messages that no entity could get.
func (r *region) check(id string, message any) (size int, err error) {
	refuse := func(detail string) (int, error) { return 0, &MessageError{r.name, clip(id), detail, ErrInvalid} }
	switch {
	case id == "":
		return refuse("the id is empty")
	case len(id) > protocol.MaxEntityBytes:
		return refuse(fmt.Sprintf("the id has %d bytes, at most %d are possible", len(id), protocol.MaxEntityBytes))
	case !utf8.ValidString(id):
		return refuse("the id is not valid UTF-8")
	case reflect.ValueOf(message).IsNil():
		return refuse("the message is nil")
	}
	if size = r.codec.Size(message); size > r.system.cfg.MaxMessageBytes {
		return refuse(fmt.Sprintf("the message has %d bytes, sharding.max-message-bytes is %d", size, r.system.cfg.MaxMessageBytes))
	}
	if refused := r.refused.Load(); refused != nil {
		return 0, refused
	}
	return size, nil
}

// clip shortens an id for an error.
func clip(id string) string {
	if len(id) > 64 {
		return id[:64] + "..."
	}
	return id
}

// send accepts a message, with the ask that waits for its reply, if any.
func (r *region) send(ctx context.Context, id string, message any, a *ask) error {
	size, err := r.check(id, message)
	if err != nil {
		return err
	}
	c := &r.cells[protocol.ShardOf(id, r.shards)]
	now := r.system.clock.Instant()
	m := &protocol.Message{Kind: r.name, Shard: c.shardID(), Entity: id, Value: message, Size: size + len(id)}
	if deadline, ok := ctx.Deadline(); ok {
		m.Deadline = now.Add(time.Until(deadline))
	}
	if a != nil {
		m.Correlation = a.correlation
	}
	for {
		admission, room := r.accept(c, now, m, a)
		switch admission {
		case protocol.Accepted:
			return nil
		case protocol.WindowFull:
			select {
			case <-room:
				now = r.system.clock.Instant()
			case <-ctx.Done():
				return &MessageError{r.name, id, "waited for room: " + context.Cause(ctx).Error(), errors.Join(ErrNotDelivered, context.Cause(ctx))}
			}
		default:
			return &MessageError{r.name, id, "", admission.Code().Err()}
		}
	}
}

// accept hands a message to its cell, once.
func (r *region) accept(c *cell, now machine.Instant, m *protocol.Message, a *ask) (protocol.Admission, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a != nil {
		c.asks[a.correlation] = a // Before the reply can come.
	}
	admission := c.shard.Accept(now, m, &c.out)
	if admission != protocol.Accepted && a != nil {
		delete(c.asks, a.correlation)
	}
	r.carry(c, nil)
	return admission, c.room
}

// ask is somebody who waits for a reply.
type ask struct {
	correlation uint64
	delivered   bool                 // The message is in a mailbox. Guarded by the cell's lock.
	reply       chan *protocol.Reply // Capacity one: it gets one reply at most, since it leaves the table with it.
}

// ask sends a message and waits.
func (r *region) ask(ctx context.Context, id string, message any) (*protocol.Reply, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askLimit)
		defer cancel()
	}
	a := &ask{correlation: r.asks.Add(1), reply: make(chan *protocol.Reply, 1)}
	if err := r.send(ctx, id, message, a); err != nil {
		return nil, err
	}
	select {
	case reply := <-a.reply:
		return reply, nil
	case <-ctx.Done():
	}
	c := &r.cells[protocol.ShardOf(id, r.shards)]
	c.mu.Lock()
	delete(c.asks, a.correlation)
	c.mu.Unlock()
	select {
	case reply := <-a.reply: // It came just now.
		return reply, nil
	default:
		return nil, &MessageError{r.name, id, "no reply: " + context.Cause(ctx).Error(), errors.Join(ErrUnknownOutcome, context.Cause(ctx))}
	}
}

// answered takes a reply from another node.
func (r *region) answered(c *cell, reply *protocol.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.complete(c, reply)
}

// complete hands a reply to whoever waits for it; the caller holds the cell. A
// reply to nobody reports a message that was refused, or comes too late.
func (r *region) complete(c *cell, reply *protocol.Reply) {
	a := c.asks[reply.Correlation]
	if a == nil {
		if reply.Code != protocol.CodeOK {
			r.system.counters.failed.Add(1)
		}
		return
	}
	delete(c.asks, reply.Correlation)
	a.reply <- reply
}
