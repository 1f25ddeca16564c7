// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Several messages of one stream in one envelope: Encoder.Run writes as many as fit, and Run
// reads them, one after the other, into messages with memory of their own.

// numberItems is the field of the messages of a run.
const numberItems = 18

// runBytes bounds the bytes of a run beyond its first message, so that the run fits into
// every frame into which that message fits, and does not keep the lane from other messages
// for long.
const runBytes = 32 << 10

// Run appends an envelope with m and as many of the messages behind it, by
// [cell.Message.Next], as fit, but at most n. Together they are a part of one
// stream, and none has been passed on. Run returns the first message that it left out, nil
// if it took all. A single message is encoded as by [Encoder.Message].
func (e *Encoder) Run(dst []byte, m *cell.Message, n int, now machine.Instant) ([]byte, *cell.Message) {
	if n < 2 || m.Next() == nil {
		return e.Message(dst, m, now), m.Next()
	}
	e.remember(m)
	dst = wire.AppendUint(dst, 1, typeRun)
	dst = append(dst, e.stream...)
	dst = wire.AppendUint(dst, 7, m.Seq)
	dst = wire.AppendUint(dst, 8, uint64(e.There))
	return appendItems(dst, m, n, math.MaxInt, now)
}

// appendItems appends m and up to n-1 of the messages behind it as items, as many as have
// room: the first has room bytes, the others together runBytes at most.
func appendItems(dst []byte, m *cell.Message, n, room int, now machine.Instant) ([]byte, *cell.Message) {
	entity := ""
	for ; m != nil && n > 0; m, n = m.Next(), n-1 {
		size := itemSize(m, m.Entity != entity, now)
		if room -= size; room < 0 {
			break
		}
		room = min(room, runBytes)
		dst = wire.AppendVarint(wire.AppendTag(dst, numberItems, wire.BytesType), uint64(size))
		if m.Entity != entity {
			entity = m.Entity
			dst = wire.AppendString(dst, 4, entity)
		}
		dst = appendContent(dst, m, now)
	}
	return dst, m
}

// remaining returns the time for which the reply to m is still waited for, and whether that
// time is over; 0 and false if nobody waits.
func remaining(m *cell.Message, now machine.Instant) (left uint64, expired bool) {
	switch {
	case m.Deadline == 0:
		return 0, false
	case m.Expired(now):
		return 0, true
	default:
		return uint64(m.Deadline.Sub(now)), false
	}
}

// itemSize is the number of bytes inside an item.
func itemSize(m *cell.Message, entity bool, now machine.Instant) int {
	left, expired := remaining(m, now)
	size := wire.SizeUint(10, m.Correlation) + wire.SizeUint(11, left) + wire.SizeBool(19, expired) + wire.SizeBytes(12, len(m.Trace)) +
		wire.SizeUint(13, uint64(m.Codec)) + wire.SizeUint(14, uint64(m.Flags)) + wire.SizeBytes(15, len(m.Payload)) + len(m.Extra)
	if entity {
		size += wire.SizeBytes(4, len(m.Entity))
	}
	return size
}

// Run holds several messages of one stream: an envelope, or a part of a batch. It refers to the bytes that
// it was decoded from, and to its decoder.
type Run struct {
	d       *Decoder
	e       heading
	items   []byte
	written machine.Instant // When the messages were written, at the earliest; known to those who have the items.
}

// Kind returns the kind of the messages.
func (r *Run) Kind() string { return r.e.of.kind }

// Shard returns the shard of the messages.
func (r *Run) Shard() protocol.ShardID { return r.e.of.shard }

// Origin returns the origin of the messages, which sends them itself.
func (r *Run) Origin() gossip.NodeID { return r.e.of.origin }

// open returns a run whose items begin at b.
func (d *Decoder) open(b []byte) (*Run, error) {
	return d.openRun(d.e.heading(), b)
}

// openRun returns a run with a heading, whose items begin at b.
func (d *Decoder) openRun(h heading, b []byte) (*Run, error) {
	switch {
	case h.of.kind == "":
		return nil, wire.Malformed("an envelope without a kind")
	case h.of.origin.IsZero() || h.seq == 0 || h.of.base.IsZero():
		return nil, wire.Malformed("a run without a place in a stream")
	}
	d.run = Run{d: d, e: h, items: b}
	return &d.run, nil
}

// Messages calls f with each message in order. The messages, which fresh makes as
// [Decoder.Fresh] does, have memory of their own. An error ends the run; the messages before
// it were good. The remaining time of a deadline counts as with [Run.Items].
func (r *Run) Messages(now machine.Instant, fresh func(n int) *cell.Message, f func(*cell.Message)) error {
	items, err := r.Items(now)
	defer r.Done(items)
	for i := range items {
		m := fresh(len(items[i].Payload()))
		r.Into(&items[i], m)
		f(m)
	}
	return err
}

// inside decodes the fields of an item, which has the entity of the item before until it names
// another.
func (d *Decoder) inside(item *wire.Field, i *Item) error {
	b, err := item.Data(math.MaxInt)
	for len(b) > 0 && err == nil {
		var f wire.Field
		if f, b, err = wire.Next(b); err != nil {
			return err
		}
		switch f.Number {
		case 4:
			err = d.entity(&f, &i.entity)
		case 15:
			i.payload, err = f.Data(math.MaxInt)
		default:
			if i.more == nil {
				d.others = append(d.others, content{})
				i.more = &d.others[len(d.others)-1] // It stays where it is when the list grows.
			}
			err = i.more.set(&f)
		}
	}
	if err == nil && i.entity == "" {
		err = wire.Malformed("a message without an entity")
	}
	return err
}
