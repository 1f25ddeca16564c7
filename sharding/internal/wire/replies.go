// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// numberReplies is the field of a reply among several in one envelope.
const numberReplies = 22

// ReplyListBytes bounds the replies in one envelope. Every frame has room for as many.
const ReplyListBytes = 16 << 10

// replyBytes bounds what a reply has beside its kind, its detail and its payload.
const replyBytes = 64

// ReplyList collects replies that go to one node in one envelope. The zero value is empty. A
// ReplyList is for one goroutine at a time.
type ReplyList struct {
	bytes []byte
	kind  string // Of the last reply.
	count int
}

// Add puts a reply, whose payload is encoded, into the list, as [AppendReply] would encode it but
// for its clock, which is that of the envelope. False: the list has no room for the reply.
func (l *ReplyList) Add(r *protocol.Reply) bool {
	if len(r.Kind)+len(r.Detail)+len(r.Payload)+replyBytes > ReplyListBytes-len(l.bytes) {
		return false
	}
	dst, at := wire.Begin(l.bytes, numberReplies)
	if r.Kind != l.kind {
		dst = wire.AppendString(dst, 2, r.Kind)
		l.kind = r.Kind
	}
	dst = wire.AppendUint(dst, 3, uint64(r.Shard))
	l.bytes = wire.End(appendOutcome(dst, r), at)
	l.count++
	return true
}

// Len returns the number of replies in the list.
func (l *ReplyList) Len() int { return l.count }

// Reset empties the list and keeps its memory.
func (l *ReplyList) Reset() { *l = ReplyList{bytes: l.bytes[:0]} }

// Append appends the envelope of the list. The clock is that of the sender.
func (l *ReplyList) Append(dst []byte, clock machine.Instant) []byte {
	dst = wire.AppendUint(dst, 1, typeReplies)
	dst = wire.AppendUint(dst, 8, uint64(clock))
	return append(dst, l.bytes...)
}

// Replies is an envelope with several replies. It refers to the bytes that it was decoded from,
// and to its decoder.
type Replies struct {
	// Clock is what the clock of the sender showed.
	Clock machine.Instant

	d     *Decoder
	parts []byte
}

// openReplies returns an envelope whose replies begin at b.
func (d *Decoder) openReplies(b []byte) *Replies {
	d.replies = Replies{Clock: machine.Instant(d.e.clock), d: d, parts: b} // At most math.MaxInt64.
	return &d.replies
}

// Each calls f with each reply, in order, which has memory of its own. An error ends the list;
// the replies before it were good.
func (r *Replies) Each(f func(*protocol.Reply)) error {
	kind := ""
	for rest := r.parts; len(rest) > 0; {
		var field wire.Field
		var err error
		if field, rest, err = wire.Next(rest); err != nil {
			return err
		}
		if field.Number != numberReplies {
			continue // The field is one of a later version.
		}
		reply, err := r.d.replyOf(&field, kind)
		if err != nil {
			return err
		}
		kind, reply.Clock = reply.Kind, r.Clock
		f(reply)
	}
	return nil
}

// replyOf decodes a reply of a list. Without a kind it is of the kind that is given.
func (d *Decoder) replyOf(f *wire.Field, kind string) (*protocol.Reply, error) {
	b, err := f.Data(math.MaxInt)
	d.e = envelope{of: stream{kind: kind}}
	for len(b) > 0 && err == nil {
		var in wire.Field
		if in, b, err = wire.Next(b); err == nil {
			err = d.set(&in)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case d.e.of.kind == "":
		return nil, wire.Malformed("a reply without a kind")
	}
	return d.e.reply(), nil
}
