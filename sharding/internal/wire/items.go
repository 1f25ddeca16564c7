// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Item is one message of a run, as it lies in the frame: what it returns refers to the bytes of
// the frame, but for the entity. The run says what its items have in common.
type Item struct {
	// Value is for whoever decodes the payload.
	Value any
	// Seq is the place of the message in its stream.
	Seq uint64

	of      *Run
	written machine.Instant
	content content
}

// itemsKept is for how many items a [Decoder] keeps memory.
const itemsKept = 1024

// Items returns the messages of the run, in order, valid until [Run.Done] is called or the
// decoder is used again. With an error it returns the messages before the one that is malformed.
// The remaining time of a deadline counts from when the messages were written, as far as that
// is known, else from now.
func (r *Run) Items(now machine.Instant) ([]Item, error) {
	var c content
	items, written := r.d.items[:0], r.e.written(now)
	for b, seq := r.items, r.e.seq; len(b) > 0; {
		item, rest, err := wire.Next(b)
		if err != nil {
			return items, err
		}
		b = rest
		if item.Number != numberItems {
			continue // The field is one of a later version.
		}
		c = content{entity: c.entity}
		if err := r.d.inside(&item, &c); err != nil {
			return items, err
		}
		items = append(items, Item{Seq: seq, of: r, written: written, content: c})
		seq++
	}
	r.d.items = items
	return items, nil
}

// Done gives the memory of the items back.
func (r *Run) Done(items []Item) {
	clear(items)
	if r.d.items = items[:0]; cap(items) > itemsKept {
		r.d.items = nil
	}
}

// Base names the stream of the messages, together with the origin and the shard.
func (r *Run) Base() protocol.Epoch { return r.e.of.base }

// Entity returns the id of the entity.
func (i *Item) Entity() string { return i.content.entity }

// Payload returns the encoded message.
func (i *Item) Payload() []byte { return i.content.payload }

// Whole reports whether the payload came with the message, and nothing came that this version
// does not know.
func (i *Item) Whole() bool { return i.content.flags == 0 && len(i.content.extra) == 0 }

// Bare reports whether the message is a tell, of which there is nothing to know but the stream,
// the entity and the payload.
func (i *Item) Bare() bool {
	c := &i.content
	return c.correlation == 0 && c.left == 0 && !c.expired && len(c.trace) == 0
}

// Into sets the fields of an empty message, in the message's own memory.
func (i *Item) Into(m *cell.Message) {
	i.Head(m)
	m.Payload = append(m.Payload, i.content.payload...)
}

// Head sets the fields of an empty message but for the payload, in the message's own memory.
func (i *Item) Head(m *cell.Message) {
	i.content.head(m, i.written)
	i.of.e.of.into(m)
	m.Seq, m.Hops = i.Seq, i.of.e.hops
}

// head sets the fields of a message that do not belong to its stream, without the payload.
func (c *content) head(m *cell.Message, written machine.Instant) {
	m.Entity, m.Correlation, m.Codec, m.Flags, m.Extra = c.entity, c.correlation, c.codec, c.flags, c.extra
	m.Trace = bytes.Clone(c.trace)
	m.Deadline = c.deadline(written)
}
