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
// the frame, but for the entity. The run says what its items have in common. Most messages are
// tells, of which an item has all that there is; so a frame of many needs little memory.
type Item struct {
	// Value is for whoever decodes the payload.
	Value any
	// Seq is the place of the message in its stream.
	Seq uint64

	entity  string
	payload []byte
	more    *content // The other fields of the message, without entity and payload; nil if it has none.
}

// itemsKept is for how many items a [Decoder] keeps memory.
const itemsKept = 1024

// Items returns the messages of the run, in order, valid until [Run.Done] is called or the
// decoder is used again. With an error it returns the messages before the one that is malformed.
// The remaining time of a deadline counts from when the messages were written, as far as that
// is known, else from now.
func (r *Run) Items(now machine.Instant) ([]Item, error) {
	items, entity := r.d.items[:0], ""
	r.written = r.e.written(now)
	for b, seq := r.items, r.e.seq; len(b) > 0; {
		item, rest, err := wire.Next(b)
		if err != nil {
			return items, err
		}
		b = rest
		if item.Number != numberItems {
			continue // The field is one of a later version.
		}
		items = append(items, Item{Seq: seq, entity: entity})
		i := &items[len(items)-1]
		if err := r.d.inside(&item, i); err != nil {
			return items[:len(items)-1], err
		}
		entity = i.entity
		seq++
	}
	r.d.items = items
	return items, nil
}

// Done gives the memory of the items back.
func (r *Run) Done(items []Item) {
	d := r.d
	clear(items)
	clear(d.others)
	if d.items, d.others = items[:0], d.others[:0]; cap(items) > itemsKept || cap(d.others) > itemsKept {
		d.items, d.others = nil, nil
	}
}

// Base names the stream of the messages, together with the origin and the shard.
func (r *Run) Base() protocol.Epoch { return r.e.of.base }

// Entity returns the id of the entity.
func (i *Item) Entity() string { return i.entity }

// Payload returns the encoded message.
func (i *Item) Payload() []byte { return i.payload }

// Whole reports whether the payload came with the message, and nothing came that this version
// does not know.
func (i *Item) Whole() bool { return i.more == nil || i.more.flags == 0 && len(i.more.extra) == 0 }

// Traced reports whether the message has a trace context.
func (i *Item) Traced() bool { return i.more != nil && len(i.more.trace) > 0 }

// Ask returns the correlation and the deadline of the message, see [cell.Message]; false for one
// that nobody waits for.
func (r *Run) Ask(i *Item) (correlation uint64, deadline machine.Instant, ok bool) {
	if i.more == nil {
		return 0, 0, false
	}
	correlation, deadline = i.more.correlation, i.more.deadline(r.written)
	return correlation, deadline, correlation != 0 || deadline != 0
}

// Into sets the fields of an empty message of the run, in the message's own memory.
func (r *Run) Into(i *Item, m *cell.Message) {
	r.Head(i, m)
	m.Payload = append(m.Payload, i.payload...)
}

// Head sets the fields of an empty message of the run but for the payload, in the message's own
// memory.
func (r *Run) Head(i *Item, m *cell.Message) {
	if i.more != nil {
		i.more.head(m, r.written)
	}
	m.Entity = i.entity
	r.e.of.into(m)
	m.Seq, m.Hops = i.Seq, r.e.hops
}

// head sets the fields of a message that do not belong to its stream, without the payload.
func (c *content) head(m *cell.Message, written machine.Instant) {
	m.Entity, m.Correlation, m.Codec, m.Flags, m.Extra = c.entity, c.correlation, c.codec, c.flags, c.extra
	m.Trace = bytes.Clone(c.trace)
	m.Deadline = c.deadline(written)
}
