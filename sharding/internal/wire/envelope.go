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

// AppendMessage appends the envelope of a message whose payload is encoded.
// The deadline becomes the time that remains at now.
func AppendMessage(dst []byte, m *protocol.Message, now machine.Instant) []byte {
	dst = appendUint(dst, 1, typeMessage)
	dst = appendString(dst, 2, m.Kind)
	dst = appendUint(dst, 3, uint64(m.Shard))
	dst = appendString(dst, 4, m.Entity)
	dst = appendNode(dst, 5, m.Origin)
	dst = appendEpoch(dst, 6, m.Base)
	dst = appendUint(dst, 7, m.Seq)
	dst = appendEpoch(dst, 8, m.Route)
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

// envelope holds the fields of any envelope.
type envelope struct {
	kind uint8
	m    protocol.Message
	code uint8
	text string
	left uint64
}

// DecodeItem returns what an envelope holds: a [*protocol.Message], a
// [*protocol.Reply], a [protocol.Ack] or a [protocol.Need]. It keeps no part of
// b. The time that remains counts from now.
func DecodeItem(b []byte, now machine.Instant) (any, error) {
	var e envelope
	for len(b) > 0 {
		f, rest, err := next(b)
		if err != nil {
			return nil, err
		}
		if err := e.set(&f); err != nil {
			return nil, err
		}
		b = rest
	}
	return e.item(now)
}

// set takes over one field.
func (e *envelope) set(f *field) error {
	m := &e.m
	switch f.number {
	case 1:
		return set(&e.kind, f, math.MaxUint8)
	case 2:
		return setText(&m.Kind, f, protocol.MaxKindBytes)
	case 3:
		return set(&m.Shard, f, protocol.MaxShards-1)
	case 4:
		return setText(&m.Entity, f, protocol.MaxEntityBytes)
	case 5:
		return setNode(&m.Origin, f)
	case 6:
		return setEpoch(&m.Base, f)
	case 7:
		return set(&m.Seq, f, math.MaxUint64)
	case 8:
		return setEpoch(&m.Route, f)
	case 9:
		return set(&m.Hops, f, math.MaxUint8)
	case 10:
		return set(&m.Correlation, f, math.MaxUint64)
	case 11:
		return set(&e.left, f, math.MaxInt64)
	default:
		return e.setRest(f)
	}
}

func (e *envelope) setRest(f *field) error {
	m := &e.m
	switch f.number {
	case 12:
		return setBytes(&m.Trace, f, maxTrace)
	case 13:
		return set(&m.Codec, f, math.MaxUint16)
	case 14:
		return set(&m.Flags, f, math.MaxUint32)
	case 15:
		return setBytes(&m.Payload, f, math.MaxInt)
	case 16:
		return set(&e.code, f, math.MaxUint8)
	case 17:
		return setText(&e.text, f, maxDetail)
	default:
		m.Extra = append(m.Extra, f.raw...)
		return nil
	}
}

func setBytes(dst *[]byte, f *field, limit int) error {
	b, err := f.data(limit)
	*dst = bytes.Clone(b)
	return err
}

// item checks what the envelope holds and returns it.
func (e *envelope) item(now machine.Instant) (any, error) {
	m := &e.m
	if m.Kind == "" {
		return nil, malformed("an envelope without a kind")
	}
	switch e.kind {
	case typeMessage:
		switch {
		case m.Entity == "":
			return nil, malformed("a message without an entity")
		case m.Origin == gossip.NodeID{} || m.Seq == 0 || m.Base.IsZero():
			return nil, malformed("a message without a place in a stream")
		}
		if e.left != 0 {
			m.Deadline = now.Add(time.Duration(e.left))
		}
		if m.Payload == nil {
			m.Payload = []byte{}
		}
		return m, nil
	case typeReply:
		return &protocol.Reply{
			Kind: m.Kind, Shard: m.Shard, Correlation: m.Correlation, Code: protocol.Code(e.code), Detail: e.text,
			Codec: m.Codec, Flags: m.Flags, Payload: m.Payload,
		}, nil
	case typeAck:
		return protocol.Ack{Kind: m.Kind, Shard: m.Shard, Base: m.Base, Seq: m.Seq}, nil
	case typeNeed:
		return protocol.Need{Kind: m.Kind, Shard: m.Shard, Base: m.Base, Seq: m.Seq}, nil
	default:
		return nil, malformed("an envelope of type %d", e.kind)
	}
}
