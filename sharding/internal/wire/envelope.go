// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"math"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Envelopes of the message lane: the Encoder writes a message, with the stream that it shares
// with others encoded once; replies, acknowledgements and their kin follow; the Decoder
// collects the fields of one envelope, whatever their order, and item makes its content.

// The types of envelopes. They are part of the wire.
const (
	typeMessage = 1
	typeReply   = 2
	typeAck     = 3
	typeNeed    = 4
	typeRun     = 5
	typeFlow    = 6
	typeAcks    = 7
	typeBatch   = 8
	typeReplies = 9
)

// numberLast is the highest number of a field of an envelope, of whatever type. A later version gives fields that an
// earlier one is to pass on numbers above it.
const numberLast = numberReplies

// Limits of the parts of an envelope; the payload is bounded by the transport.
const (
	maxDetail = 1024
	maxTrace  = 10 << 10
)

// AppendMessage appends the envelope of a message with an [Encoder] of its own.
func AppendMessage(dst []byte, m *cell.Message, now machine.Instant) []byte {
	return new(Encoder).Message(dst, m, now)
}

// Encoder encodes messages. It remembers the fields that the messages of one origin to one
// shard have in common. An Encoder is for one goroutine at a time; the zero value is
// ready to use.
type Encoder struct {
	// There is the least that the clock of the receiver can show now; 0 when that is not
	// known. See [cell.ClockBounds].
	There machine.Instant

	of     stream
	stream []byte // The encoding of the last stream, field 5; empty before the first message.
	named  naming // Of the last stream.
}

// stream holds the fields that the messages of one origin to one shard have in common.
type stream struct {
	kind        string
	shard       protocol.ShardID
	origin      gossip.NodeID
	base, route protocol.Epoch
}

// append appends the stream as field 5.
func (s *stream) append(dst []byte) []byte {
	dst, at := wire.Begin(dst, 5)
	dst = wire.AppendString(dst, 1, s.kind)
	dst = wire.AppendUint(dst, 2, uint64(s.shard))
	dst = wire.AppendNode(dst, 3, s.origin)
	dst = appendEpoch(dst, 4, s.base)
	dst = appendEpoch(dst, 5, s.route)
	return wire.End(dst, at)
}

// parse decodes a stream from the inside of field 5.
func (s *stream) parse(b []byte) (err error) {
	*s = stream{}
	for len(b) > 0 && err == nil {
		var f wire.Field
		if f, b, err = wire.Next(b); err != nil {
			return err
		}
		switch f.Number {
		case 1:
			err = wire.SetName(&s.kind, &f, protocol.MaxKindBytes)
		case 2:
			err = wire.Set(&s.shard, &f, math.MaxUint32)
		case 3:
			err = wire.SetNode(&s.origin, &f)
		case 4:
			err = setEpoch(&s.base, &f)
		case 5:
			err = setEpoch(&s.route, &f)
		}
	}
	return err
}

// Message appends the envelope of a message whose payload is encoded. The
// deadline becomes the time that remains at now.
func (e *Encoder) Message(dst []byte, m *cell.Message, now machine.Instant) []byte {
	e.remember(stream{m.Kind, m.Shard, m.Origin, m.Base, m.Route})
	dst = wire.AppendUint(dst, 1, typeMessage)
	dst = wire.AppendString(dst, 4, m.Entity)
	dst = append(dst, e.stream...)
	dst = wire.AppendUint(dst, 7, m.Seq)
	if m.Deadline != 0 {
		dst = wire.AppendUint(dst, 8, uint64(e.There))
	}
	dst = wire.AppendUint(dst, 9, uint64(m.Hops))
	return appendContent(dst, m, now)
}

// appendContent appends the fields of a message that are not those of its stream, without
// the entity. The deadline becomes the time that remains at now.
func appendContent(dst []byte, m *cell.Message, now machine.Instant) []byte {
	var left uint64
	var expired bool
	if m.Deadline != 0 {
		left, expired = remaining(m.Deadline, now)
	}
	dst = wire.AppendUint(dst, 10, m.Correlation)
	dst = wire.AppendUint(dst, 11, left)
	dst = wire.AppendBytes(dst, 12, m.Trace)
	dst = wire.AppendUint(dst, 13, uint64(m.Codec))
	dst = wire.AppendUint(dst, 14, uint64(m.Flags))
	dst = wire.AppendBytes(dst, 15, m.Payload)
	dst = wire.AppendBool(dst, 19, expired)
	return append(dst, m.Extra...)
}

// remember sees to it that a stream is encoded.
func (e *Encoder) remember(of stream) {
	if len(e.stream) == 0 || e.of != of {
		e.of, e.stream, e.named = of, of.append(e.stream[:0]), naming{}
	}
}

// AppendReply appends the envelope of a reply whose payload is encoded. A detail that is too
// long is cut, and bytes in it that are not text are left out: the detail is an entity's
// own text, and must not make the reply unreadable.
func AppendReply(dst []byte, r *protocol.Reply) []byte {
	dst = wire.AppendUint(dst, 1, typeReply)
	dst = wire.AppendString(dst, 2, r.Kind)
	dst = wire.AppendUint(dst, 3, uint64(r.Shard))
	return appendOutcome(wire.AppendUint(dst, 8, uint64(r.Clock)), r)
}

// appendOutcome appends the fields of a reply that say which ask it is for, and what came of that.
func appendOutcome(dst []byte, r *protocol.Reply) []byte {
	dst = wire.AppendUint(dst, 10, r.Correlation)
	dst = wire.AppendUint(dst, 13, uint64(r.Codec))
	dst = wire.AppendUint(dst, 14, uint64(r.Flags))
	dst = wire.AppendBytes(dst, 15, r.Payload)
	dst = wire.AppendUint(dst, 16, uint64(r.Code))
	return wire.AppendString(dst, 17, wire.Clip(r.Detail, maxDetail))
}

// AppendAck appends the envelope of an acknowledgement.
func AppendAck(dst []byte, a protocol.Ack) []byte {
	return wire.AppendUint(appendSignal(dst, typeAck, a.Kind, a.Shard, a.Base, a.Seq), 8, uint64(a.Clock))
}

// AppendNeed appends the envelope of a request to transmit again.
func AppendNeed(dst []byte, n protocol.Nack) []byte {
	return appendSignal(dst, typeNeed, n.Kind, n.Shard, n.Base, n.Seq)
}

func appendSignal(dst []byte, t uint64, kind string, shard protocol.ShardID, base protocol.Epoch, seq uint64) []byte {
	dst = wire.AppendUint(dst, 1, t)
	dst = wire.AppendString(dst, 2, kind)
	dst = wire.AppendUint(dst, 3, uint64(shard))
	dst = appendEpoch(dst, 6, base)
	return wire.AppendUint(dst, 7, seq)
}

// AppendFlow appends the envelope of a flow.
func AppendFlow(dst []byte, f protocol.Flow) []byte {
	dst = wire.AppendUint(dst, 1, typeFlow)
	dst = wire.AppendString(dst, 2, f.Kind)
	dst = wire.AppendUint(dst, 3, uint64(f.Shard))
	dst = wire.AppendString(dst, 4, f.Entity)
	dst = appendEpoch(dst, 6, f.Epoch)
	return wire.AppendUint(dst, 16, uint64(f.State))
}

// DecodeItem decodes one envelope with a [Decoder] of its own.
func DecodeItem(b []byte, now machine.Instant) (any, error) { return new(Decoder).Item(b, now) }

// maxInterned bounds the texts and the streams that a [Decoder] knows. Beyond it
// the decoder forgets all of them, which costs less than to find the oldest.
const maxInterned = 4096

// Decoder decodes envelopes. It remembers the ids of entities and the streams
// that it has seen, so that an id or a stream that comes again is neither copied nor
// checked anew. A Decoder is for one goroutine at a time; the zero value is ready to
// use.
type Decoder struct {
	// Fresh returns an empty message with an empty payload that holds n bytes without
	// growing. Nil stands for [cell.NewMessage].
	Fresh func(n int) *cell.Message

	entities map[string]string
	streams  map[string]*stream // Not changed any more.
	e        envelope
	run      Run
	items    []Item
	others   []content // What items have beyond entity and payload.
	acks     Acks
	batch    Batch
	replies  Replies
}

// envelope holds the fields of any envelope. Bytes are parts of the input.
type envelope struct {
	content

	typ    uint8
	code   uint8
	hops   uint8
	of     stream
	detail string
	seq    uint64
	clock  uint64
	acks   []byte
}

// runHeader holds the fields that the messages of a run have in common.
type runHeader struct {
	of    *stream
	seq   uint64 // The number of the first message.
	clock uint64
	hops  uint8
}

// written is when the messages were written, at the earliest, by the clock of this process, if
// that is known; else now.
func (h *runHeader) written(now machine.Instant) machine.Instant {
	if h.clock == 0 {
		return now
	}
	return min(machine.Instant(h.clock), now)
}

// heading returns the fields of the envelope that a run has.
func (e *envelope) heading() runHeader { return runHeader{&e.of, e.seq, e.clock, e.hops} }

// content holds the fields of a message that are not those of its stream.
type content struct {
	entity         string
	correlation    uint64
	left           uint64
	expired        bool
	trace, payload []byte
	codec          uint16
	flags          uint32
	extra          []byte // The unknown fields, as a copy.
}

// Item returns the content of an envelope: a [*cell.Message], a
// [*protocol.Reply], a [protocol.Ack], a [protocol.Nack] or a [protocol.Flow], which
// keep no part of b; or a [*Run], [*Batch], [*Replies] or [*Acks], which keep b, and are valid
// until the next call. The remaining time of a deadline counts from now.
func (d *Decoder) Item(b []byte, now machine.Instant) (any, error) {
	d.e = envelope{}
	for len(b) > 0 {
		f, rest, err := wire.Next(b)
		if err != nil {
			return nil, err
		}
		if f.Number == numberItems && d.e.typ == typeRun {
			run, err := d.open(b)
			if err != nil {
				return nil, err
			}
			return run, nil
		}
		if f.Number == numberParts && d.e.typ == typeBatch {
			return d.openBatch(b), nil
		}
		if f.Number == numberReplies && d.e.typ == typeReplies {
			return d.openReplies(b), nil
		}
		if err := d.set(&f); err != nil {
			return nil, err
		}
		b = rest
	}
	return d.item(now)
}

// set takes over one field of the envelope.
func (d *Decoder) set(f *wire.Field) error {
	e := &d.e
	switch f.Number {
	case 1:
		return wire.Set(&e.typ, f, math.MaxUint8)
	case 2:
		return wire.SetName(&e.of.kind, f, protocol.MaxKindBytes)
	case 3:
		return wire.Set(&e.of.shard, f, math.MaxUint32)
	case 4:
		return d.entity(f, &e.entity)
	case 5:
		of, err := d.stream(f)
		if err == nil {
			e.of = *of
		}
		return err
	case 6:
		return setEpoch(&e.of.base, f)
	case 7:
		return wire.Set(&e.seq, f, math.MaxUint64)
	case 8:
		return wire.Set(&e.clock, f, math.MaxInt64)
	case 9:
		return wire.Set(&e.hops, f, math.MaxUint8)
	case 16:
		return wire.Set(&e.code, f, math.MaxUint8)
	case 17:
		return wire.SetText(&e.detail, f, maxDetail)
	case numberAcks:
		var err error
		e.acks, err = f.Data(math.MaxInt)
		return err
	default:
		return e.set(f)
	}
}

// entity stores the id of an entity, which the decoder probably knows already.
func (d *Decoder) entity(f *wire.Field, dst *string) error {
	b, err := f.Data(protocol.MaxEntityBytes)
	if err != nil {
		return err
	}
	if known, ok := d.entities[string(b)]; ok {
		*dst = known
		return nil
	}
	if err := wire.SetText(dst, f, protocol.MaxEntityBytes); err != nil {
		return err
	}
	if d.entities == nil || len(d.entities) >= maxInterned {
		d.entities = make(map[string]string)
	}
	d.entities[*dst] = *dst
	return nil
}

// maxStream bounds the encoding of a stream that is remembered.
const maxStream = 1024

// stream returns a stream, which the decoder probably knows already.
func (d *Decoder) stream(f *wire.Field) (*stream, error) {
	b, err := f.Data(math.MaxInt)
	if err != nil {
		return nil, err
	}
	if known, ok := d.streams[string(b)]; ok {
		return known, nil
	}
	s := new(stream)
	if err := s.parse(b); err != nil || len(b) > maxStream {
		return s, err
	}
	if d.streams == nil || len(d.streams) >= maxInterned {
		d.streams = make(map[string]*stream)
	}
	d.streams[string(b)] = s
	return s, nil
}

func (c *content) set(f *wire.Field) (err error) {
	switch f.Number {
	case 10:
		return wire.Set(&c.correlation, f, math.MaxUint64)
	case 11:
		return wire.Set(&c.left, f, math.MaxInt64)
	case 12:
		c.trace, err = f.Data(maxTrace)
		return err
	case 13:
		return wire.Set(&c.codec, f, math.MaxUint16)
	case 14:
		return wire.Set(&c.flags, f, math.MaxUint32)
	case 15:
		c.payload, err = f.Data(math.MaxInt)
		return err
	case 19:
		return wire.SetBool(&c.expired, f)
	}
	// What is kept is written behind the other fields when the message is passed on, where the last one counts.
	if f.Number <= numberLast {
		return wire.Malformed("field %d has no place in a message", f.Number)
	}
	c.extra = append(c.extra, f.Raw...)
	return nil
}

// item checks what the envelope holds and returns it.
func (d *Decoder) item(now machine.Instant) (any, error) {
	e := &d.e
	if e.of.kind == "" {
		return nil, wire.Malformed("an envelope without a kind")
	}
	switch e.typ {
	case typeMessage:
		return d.message(now)
	case typeReply:
		return e.reply(), nil
	case typeAck:
		return protocol.Ack{Kind: e.of.kind, Shard: e.of.shard, Base: e.of.base, Seq: e.seq, Clock: machine.Instant(e.clock)}, nil
	case typeAcks:
		d.acks = Acks{e.of.kind, machine.Instant(e.clock), e.acks}
		return &d.acks, nil
	case typeNeed:
		return protocol.Nack{Kind: e.of.kind, Shard: e.of.shard, Base: e.of.base, Seq: e.seq}, nil
	case typeFlow:
		if e.entity == "" {
			return nil, wire.Malformed("a flow without an entity")
		}
		return protocol.Flow{
			Kind: e.of.kind, Shard: e.of.shard, Epoch: e.of.base, Entity: e.entity, State: protocol.FlowState(e.code),
		}, nil
	default:
		return nil, wire.Malformed("an envelope of type %d", e.typ)
	}
}

// reply returns a reply with memory of its own.
func (e *envelope) reply() *protocol.Reply {
	return &protocol.Reply{
		Kind: e.of.kind, Shard: e.of.shard, Correlation: e.correlation, Code: protocol.Code(e.code), Detail: e.detail, Clock: machine.Instant(e.clock),
		Codec: e.codec, Flags: e.flags, Payload: bytes.Clone(e.payload),
	}
}

// message returns a message with memory of its own.
func (d *Decoder) message(now machine.Instant) (any, error) {
	e := &d.e
	switch {
	case e.entity == "":
		return nil, wire.Malformed("a message without an entity")
	case e.of.origin.IsZero() || e.seq == 0 || e.of.base.IsZero():
		return nil, wire.Malformed("a message without a place in a stream")
	}
	fresh := d.Fresh
	if fresh == nil {
		fresh = cell.NewMessage
	}
	m := fresh(len(e.payload))
	h := e.heading()
	e.into(m, h.written(now))
	e.of.into(m)
	m.Seq, m.Hops = e.seq, e.hops
	return m, nil
}

// into sets the fields of a message that belong to its stream.
func (s *stream) into(m *cell.Message) {
	m.Kind, m.Shard, m.Origin, m.Base, m.Route = s.kind, s.shard, s.origin, s.base, s.route
}

// into sets the other fields of a message, in the message's own memory. The remaining time
// of the deadline counts from when the message was written.
func (c *content) into(m *cell.Message, written machine.Instant) {
	c.head(m, written)
	m.Payload = append(m.Payload, c.payload...)
}

// deadline is when nobody waits for the message any more, which was written at a moment.
func (c *content) deadline(written machine.Instant) machine.Instant {
	switch {
	case c.expired:
		return cell.Overdue
	case c.left != 0:
		return written.Add(time.Duration(c.left))
	default:
		return 0
	}
}
