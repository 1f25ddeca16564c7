// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"math"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/machine"
	"github.com/quorate/quorate/sharding/protocol"
)

// The types of envelopes. They are part of the wire.
const (
	typeMessage = 1
	typeReply   = 2
	typeAck     = 3
	typeNeed    = 4
)

// Limits of the parts of an envelope; the payload is bounded by the transport.
const (
	maxDetail = 1024
	maxTrace  = 1024
)

// AppendMessage appends the envelope of a message with an [Encoder] of its own.
func AppendMessage(dst []byte, m *protocol.Message, now machine.Instant) []byte {
	return new(Encoder).Message(dst, m, now)
}

// Encoder encodes messages. It remembers the parts in which the messages of one
// origin to one shard do not differ. It is for one goroutine at a time; the zero
// value is ready to use.
type Encoder struct {
	kind        string
	shard       protocol.ShardID
	origin      gossip.NodeID
	base, route protocol.Epoch
	// Encoded: fields 1 to 3, fields 5 and 6, field 8.
	cell, stream, way []byte
}

// remember encodes the parts that were others in the last message.
func (e *Encoder) remember(m *protocol.Message) {
	if e.cell == nil || e.kind != m.Kind || e.shard != m.Shard {
		e.kind, e.shard = m.Kind, m.Shard
		e.cell = appendUint(appendString(appendUint(e.cell[:0], 1, typeMessage), 2, m.Kind), 3, uint64(m.Shard))
	}
	if e.origin != m.Origin || e.base != m.Base {
		e.origin, e.base = m.Origin, m.Base
		e.stream = appendEpoch(appendNode(e.stream[:0], 5, m.Origin), 6, m.Base)
	}
	if e.route != m.Route {
		e.route = m.Route
		e.way = appendEpoch(e.way[:0], 8, m.Route)
	}
}

// Message appends the envelope of a message whose payload is encoded. The
// deadline becomes the time that remains at now.
func (e *Encoder) Message(dst []byte, m *protocol.Message, now machine.Instant) []byte {
	e.remember(m)
	dst = append(dst, e.cell...)
	dst = appendString(dst, 4, m.Entity)
	dst = append(dst, e.stream...)
	dst = appendUint(dst, 7, m.Seq)
	dst = append(dst, e.way...)
	dst = appendUint(dst, 9, uint64(m.Hops))
	dst = appendUint(dst, 10, m.Correlation)
	if m.Deadline != 0 {
		// A message whose deadline has passed must stay one with a deadline.
		dst = appendUint(dst, 11, uint64(max(m.Deadline.Sub(now), 1)))
	}
	dst = appendBytes(dst, 12, m.Trace)
	dst = appendUint(dst, 13, uint64(m.Codec))
	dst = appendUint(dst, 14, uint64(m.Flags))
	dst = appendBytes(dst, 15, m.Payload)
	return append(dst, m.Extra...)
}

// AppendReply appends the envelope of a reply whose payload is encoded. A longer
// detail is cut, and what is not text in it is left out: it is whatever an entity
// said, and must not make the reply unreadable.
func AppendReply(dst []byte, r *protocol.Reply) []byte {
	detail := strings.ToValidUTF8(r.Detail[:min(len(r.Detail), maxDetail)], "")
	dst = appendUint(dst, 1, typeReply)
	dst = appendString(dst, 2, r.Kind)
	dst = appendUint(dst, 3, uint64(r.Shard))
	dst = appendUint(dst, 10, r.Correlation)
	dst = appendUint(dst, 13, uint64(r.Codec))
	dst = appendUint(dst, 14, uint64(r.Flags))
	dst = appendBytes(dst, 15, r.Payload)
	dst = appendUint(dst, 16, uint64(r.Code))
	return appendString(dst, 17, detail)
}

// AppendAck appends the envelope of an acknowledgement.
func AppendAck(dst []byte, a protocol.Ack) []byte {
	return appendSignal(dst, typeAck, a.Kind, a.Shard, a.Base, a.Seq)
}

// AppendNeed appends the envelope of a request to transmit again.
func AppendNeed(dst []byte, n protocol.Need) []byte {
	return appendSignal(dst, typeNeed, n.Kind, n.Shard, n.Base, n.Seq)
}

func appendSignal(dst []byte, t uint64, kind string, shard protocol.ShardID, base protocol.Epoch, seq uint64) []byte {
	dst = appendUint(dst, 1, t)
	dst = appendString(dst, 2, kind)
	dst = appendUint(dst, 3, uint64(shard))
	dst = appendEpoch(dst, 6, base)
	return appendUint(dst, 7, seq)
}

// DecodeItem decodes one envelope with a [Decoder] of its own.
func DecodeItem(b []byte, now machine.Instant) (any, error) { return new(Decoder).Item(b, now) }

// maxInterned bounds the texts, the nodes and the epochs that a [Decoder] knows. Beyond it
// the decoder forgets all of them, which costs less than to find the oldest.
const maxInterned = 4096

// Decoder decodes envelopes. It remembers the names, ids, nodes and epochs that it
// has seen, so that what comes again and again is neither copied nor checked anew.
// It is for one goroutine at a time; the zero value is ready to use.
type Decoder struct {
	texts  map[string]string
	nodes  map[string]gossip.NodeID
	epochs map[string]protocol.Epoch
	e      envelope
}

// envelope holds the fields of any envelope.
type envelope struct {
	kind   uint8
	m      protocol.Message // Without Trace and Payload.
	trace  []byte           // These two are parts of the input.
	packed []byte
	code   uint8
	text   string
	left   uint64
}

// Item returns what an envelope holds: a [*protocol.Message], a
// [*protocol.Reply], a [protocol.Ack] or a [protocol.Need]. It keeps no part of
// b. The time that remains counts from now.
func (d *Decoder) Item(b []byte, now machine.Instant) (any, error) {
	d.e = envelope{}
	for len(b) > 0 {
		f, rest, err := next(b)
		if err != nil {
			return nil, err
		}
		if err := d.set(&f); err != nil {
			return nil, err
		}
		b = rest
	}
	return d.e.item(now)
}

// set takes over one field.
func (d *Decoder) set(f *field) error {
	m := &d.e.m
	switch f.number {
	case 1:
		return set(&d.e.kind, f, math.MaxUint8)
	case 2:
		return d.text(&m.Kind, f, protocol.MaxKindBytes)
	case 3:
		return set(&m.Shard, f, protocol.MaxShards-1)
	case 4:
		return d.text(&m.Entity, f, protocol.MaxEntityBytes)
	case 5:
		return d.node(&m.Origin, f)
	case 6:
		return d.epoch(&m.Base, f)
	case 7:
		return set(&m.Seq, f, math.MaxUint64)
	case 8:
		return d.epoch(&m.Route, f)
	case 9:
		return set(&m.Hops, f, math.MaxUint8)
	case 10:
		return set(&m.Correlation, f, math.MaxUint64)
	case 11:
		return set(&d.e.left, f, math.MaxInt64)
	default:
		return d.e.setRest(f)
	}
}

// text stores a text that probably came before.
func (d *Decoder) text(dst *string, f *field, limit int) error {
	b, err := f.data(limit)
	if err != nil {
		return err
	}
	if known, ok := d.texts[string(b)]; ok {
		*dst = known
		return nil
	}
	if err := setText(dst, f, limit); err != nil {
		return err
	}
	if d.texts == nil || len(d.texts) >= maxInterned {
		d.texts = make(map[string]string)
	}
	d.texts[*dst] = *dst
	return nil
}

// node stores a node that probably came before.
func (d *Decoder) node(dst *gossip.NodeID, f *field) error {
	b, err := f.data(math.MaxInt)
	if err != nil {
		return err
	}
	if known, ok := d.nodes[string(b)]; ok {
		*dst = known
		return nil
	}
	if *dst, err = node(b); err != nil {
		return err
	}
	if d.nodes == nil || len(d.nodes) >= maxInterned {
		d.nodes = make(map[string]gossip.NodeID)
	}
	d.nodes[string(b)] = *dst
	return nil
}

// epoch stores an epoch that probably came before.
func (d *Decoder) epoch(dst *protocol.Epoch, f *field) error {
	b, err := f.data(math.MaxInt)
	if err != nil {
		return err
	}
	if known, ok := d.epochs[string(b)]; ok {
		*dst = known
		return nil
	}
	if *dst, err = epoch(b); err != nil {
		return err
	}
	if d.epochs == nil || len(d.epochs) >= maxInterned {
		d.epochs = make(map[string]protocol.Epoch)
	}
	d.epochs[string(b)] = *dst
	return nil
}

func (e *envelope) setRest(f *field) (err error) {
	m := &e.m
	switch f.number {
	case 12:
		e.trace, err = f.data(maxTrace)
		return err
	case 13:
		return set(&m.Codec, f, math.MaxUint16)
	case 14:
		return set(&m.Flags, f, math.MaxUint32)
	case 15:
		e.packed, err = f.data(math.MaxInt)
		return err
	case 16:
		return set(&e.code, f, math.MaxUint8)
	case 17:
		return setText(&e.text, f, maxDetail)
	default:
		m.Extra = append(m.Extra, f.raw...)
		return nil
	}
}

// item checks what the envelope holds and returns it.
func (e *envelope) item(now machine.Instant) (any, error) {
	m := &e.m
	if m.Kind == "" {
		return nil, malformed("an envelope without a kind")
	}
	switch e.kind {
	case typeMessage:
		return e.message(now)
	case typeReply:
		return &protocol.Reply{
			Kind: m.Kind, Shard: m.Shard, Correlation: m.Correlation, Code: protocol.Code(e.code), Detail: e.text,
			Codec: m.Codec, Flags: m.Flags, Payload: bytes.Clone(e.packed),
		}, nil
	case typeAck:
		return protocol.Ack{Kind: m.Kind, Shard: m.Shard, Base: m.Base, Seq: m.Seq}, nil
	case typeNeed:
		return protocol.Need{Kind: m.Kind, Shard: m.Shard, Base: m.Base, Seq: m.Seq}, nil
	default:
		return nil, malformed("an envelope of type %d", e.kind)
	}
}

// message returns a message with memory of its own.
func (e *envelope) message(now machine.Instant) (any, error) {
	switch {
	case e.m.Entity == "":
		return nil, malformed("a message without an entity")
	case e.m.Origin.IsZero() || e.m.Seq == 0 || e.m.Base.IsZero():
		return nil, malformed("a message without a place in a stream")
	}
	m := protocol.NewMessage(len(e.packed))
	buffer := m.Payload
	*m = e.m
	m.Payload = append(buffer, e.packed...)
	m.Trace = bytes.Clone(e.trace)
	if e.left != 0 {
		m.Deadline = now.Add(time.Duration(e.left))
	}
	return m, nil
}
