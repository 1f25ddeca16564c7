// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"encoding/binary"
	"math"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
)

// A message in a chunk has three parts, of which the first is there if it has a deadline:
//
//	deadline, 8 bytes │ entity, field 4 │ correlation, trace, codec, flags, payload: fields 10, 12 to 15
//	 does not travel    left out behind   travels as it is
//	                    the same entity

// Item is the fields of a message that do not belong to its stream.
type Item struct {
	Entity      string
	Correlation uint64          // 0: nobody waits for a reply.
	Deadline    machine.Instant // 0: none.
	Trace       []byte
	Codec       uint16
	Flags       uint32
	Payload     []byte
}

// deadlineBytes is the size of a deadline in a chunk.
const deadlineBytes = 8

// maxSize is the most bytes that an item takes beyond its entity, its trace and its payload.
const maxSize = deadlineBytes + 6*(1+binary.MaxVarintLen64)

// most returns what the item takes at most.
func (m *Item) most() int { return maxSize + len(m.Entity) + len(m.Trace) + len(m.Payload) }

// append appends the item, and returns the size of the entity's field.
func (m *Item) append(b []byte) (_ []byte, head int) {
	if m.Deadline != 0 {
		b = binary.LittleEndian.AppendUint64(b, uint64(m.Deadline))
	}
	before := len(b)
	b = wire.AppendString(b, 4, m.Entity)
	head = len(b) - before
	b = wire.AppendUint(b, 10, m.Correlation)
	b = wire.AppendBytes(b, 12, m.Trace)
	b = wire.AppendUint(b, 13, uint64(m.Codec))
	b = wire.AppendUint(b, 14, uint64(m.Flags))
	return wire.AppendBytes(b, 15, m.Payload), head
}

// View is a message of a window, which must not be changed. It is valid until the next call of
// the window that changes the window.
type View struct {
	Seq      uint64
	Deadline machine.Instant
	Head     []byte // The encoded entity, as a field.
	Body     []byte // The encoded fields of what the message has beside it.
	asked    bool
}

// Split returns the body before and behind the place of the time that is left of the deadline.
func (v *View) Split() (before, behind []byte) {
	if !v.asked {
		return nil, v.Body
	}
	_, n := wire.Varint(v.Body[1:])
	return v.Body[:1+n], v.Body[1+n:]
}

// Correlation names the ask of the message; 0 for none.
func (v *View) Correlation() uint64 {
	if !v.asked {
		return 0
	}
	c, _ := wire.Varint(v.Body[1:])
	return c
}

// Entity returns the id of the entity.
func (v *View) Entity() string {
	var id string
	fields(v.Head, func(f *wire.Field) error { return wire.SetText(&id, f, math.MaxInt) })
	return id
}

// Item returns the fields of the message. The trace and the payload are those of the window.
func (v *View) Item() Item {
	m := Item{Entity: v.Entity(), Deadline: v.Deadline}
	fields(v.Body, func(f *wire.Field) (err error) {
		switch f.Number {
		case 10:
			err = wire.Set(&m.Correlation, f, math.MaxUint64)
		case 12:
			m.Trace, err = f.Data(math.MaxInt)
		case 13:
			err = wire.Set(&m.Codec, f, math.MaxUint16)
		case 14:
			err = wire.Set(&m.Flags, f, math.MaxUint32)
		case 15:
			m.Payload, err = f.Data(math.MaxInt)
		}
		return err
	})
	return m
}

// fields calls f with each field of bytes that this package has written.
func fields(b []byte, f func(*wire.Field) error) {
	err := wire.Each(b, f)
	machine.Assert(err == nil, "what is in a window can be read", "error", err)
}
