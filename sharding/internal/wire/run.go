// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"math"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/window"
)

// Several messages of one stream in one envelope: Encoder.Run writes as many as fit, and Run
// reads them, one after the other, into messages with memory of their own.

// numberItems is the field of the messages of a run.
const numberItems = 18

// runBytes bounds the bytes of a run beyond its first message, so that the run fits into
// every frame into which that message fits, and does not keep the lane from other messages
// for long.
const runBytes = 32 << 10

// Run appends an envelope with the messages of o from number first on, which o has: as many as
// fit, but at most n. It returns the number of the first message that it left out, which o may
// not have. A single message is encoded as by [Encoder.Message].
func (e *Encoder) Run(dst []byte, o *cell.Transmission, first uint64, n int, now machine.Instant) ([]byte, uint64) {
	all := o.Window.From(first)
	e.remember(stream{o.Kind, o.Shard, o.Origin, o.Base, o.Route})
	if n < 2 || all.Len() == 1 {
		return e.single(dst, &all, now), first + 1
	}
	dst = wire.AppendUint(dst, 1, typeRun)
	dst = append(dst, e.stream...)
	dst = wire.AppendUint(dst, 7, first)
	dst = wire.AppendUint(dst, 8, uint64(e.There))
	return appendItems(dst, &all, n, math.MaxInt, now)
}

// single appends the envelope of the next of the messages.
func (e *Encoder) single(dst []byte, all *window.Items, now machine.Instant) []byte {
	var v window.View
	all.Next(&v)
	dst = wire.AppendUint(dst, 1, typeMessage)
	dst = append(dst, v.Head...)
	dst = append(dst, e.stream...)
	dst = wire.AppendUint(dst, 7, v.Seq)
	if v.Deadline == 0 {
		return append(dst, v.Body...)
	}
	dst = wire.AppendUint(dst, 8, uint64(e.There))
	left, expired := remaining(v.Deadline, now)
	return appendLimited(dst, &v, left, expired)
}

// appendItems appends up to n of the messages as items, as many as have room: the first has room
// bytes, the others together runBytes at most. It returns the number of the first that it left
// out.
func appendItems(dst []byte, all *window.Items, n, room int, now machine.Instant) ([]byte, uint64) {
	var v window.View
	var before []byte // The entity of the message before.
	for n = min(n, all.Len()); n > 0; n-- {
		all.Next(&v)
		head := v.Head
		if bytes.Equal(head, before) {
			head = nil
		}
		size := len(head) + len(v.Body)
		var left uint64
		var expired bool
		if v.Deadline != 0 {
			left, expired = remaining(v.Deadline, now)
			size += wire.SizeUint(11, left) + wire.SizeBool(19, expired)
		}
		if room -= size; room < 0 {
			return dst, v.Seq
		}
		room = min(room, runBytes)
		before = v.Head
		dst = wire.AppendVarint(wire.AppendTag(dst, numberItems, wire.BytesType), uint64(size))
		dst = append(dst, head...)
		if v.Deadline == 0 {
			dst = append(dst, v.Body...)
		} else {
			dst = appendLimited(dst, &v, left, expired)
		}
	}
	return dst, all.Seq()
}

// appendLimited appends the body of a message that has a deadline.
func appendLimited(dst []byte, v *window.View, left uint64, expired bool) []byte {
	before, behind := v.Split()
	dst = wire.AppendUint(append(dst, before...), 11, left)
	return wire.AppendBool(append(dst, behind...), 19, expired)
}

// remaining returns the time that is left until a deadline, and whether it is over.
func remaining(deadline, now machine.Instant) (left uint64, expired bool) {
	if now >= deadline {
		return 0, true
	}
	return uint64(deadline.Sub(now)), false // Not negative.
}

// Run holds several messages of one stream: an envelope, or a part of a batch. It refers to the bytes that
// it was decoded from, and to its decoder.
type Run struct {
	d       *Decoder
	e       runHeader
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
func (d *Decoder) openRun(h runHeader, b []byte) (*Run, error) {
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
