// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/transport"
)

// Messages outside of the frames, of both sides, are appended and parsed first
// ([AppendAnswer], [AppendSaid], [ParseSaid]), then receipts ([AppendReceipt],
// [ParseDownstream]): a plain one by hand, another one by its table.

// Field numbers of Downstream and Unhandled in transport.proto.
const (
	fieldWelcome      = 1
	fieldRefusal      = 2
	fieldAcknowledged = 3
	fieldUnhandled    = 4
	fieldAnswers      = 5

	fieldMessages = 2

	// serviceBytes is how many bytes name a service at least.
	serviceBytes = 2

	// maxUnhandled bounds the services of one receipt.
	maxUnhandled = 256
)

// IsSaid reports whether b is an Upstream message outside of the frames, by its first tag.
func IsSaid(b []byte) bool {
	return len(b) > 0 && b[0] == tagSaid
}

// ParseSaid decodes and checks an Upstream message outside of the frames: answers, and fields
// of later versions. The payloads alias b.
func ParseSaid(b []byte) ([]Answer, error) {
	var said []Answer
	for len(b) > 0 {
		f, rest, err := wire.Next(b)
		if err != nil {
			return nil, err
		}
		b = rest
		if f.Number > fieldSaid {
			continue
		}
		if f.Number != fieldSaid || f.Type != wire.BytesType {
			return nil, wire.Malformed("field %d of wire type %d beside messages outside of the frames", f.Number, f.Type)
		}
		service, payload, err := parseEnvelope(f.Bytes)
		if err == nil && service == 0 {
			err = wire.Malformed("a message of no service")
		}
		if err != nil {
			return nil, err
		}
		said = append(roomFor(said, b, fieldSaid), Answer{service, payload})
	}
	return said, nil
}

// Unhandled counts the messages of a service that met no handler.
type Unhandled struct {
	Service  uint16
	Messages uint64
}

// Downstream is one message of the acceptor: a welcome, a refusal, or, when neither of
// the two is set, a receipt.
type Downstream struct {
	Welcome      *Welcome
	Refusal      *transport.RefusedError
	Acknowledged uint64
	Unhandled    []Unhandled
	Answers      []Answer
}

// Answer is a message that came with a receipt. Its payload aliases the bytes that it was
// parsed from.
type Answer struct {
	Service uint16
	Payload []byte
}

// AppendAnswer appends a message to a receipt. Its lengths take as many bytes as they
// need: an answer is small, and copied.
func AppendAnswer(dst []byte, service uint16, payload []byte) []byte {
	return appendAnswer(dst, fieldAnswers, service, payload)
}

// AppendSaid appends a message to an Upstream message of such alone.
func AppendSaid(dst []byte, service uint16, payload []byte) []byte {
	return appendAnswer(dst, fieldSaid, service, payload)
}

func appendAnswer(dst []byte, field wire.Number, service uint16, payload []byte) []byte {
	n := 2 + wire.SizeVarint(uint64(service)) + wire.SizeVarint(uint64(len(payload))) + len(payload)
	dst = wire.AppendTag(dst, field, wire.BytesType)
	dst = wire.AppendVarint(dst, uint64(n))
	dst = wire.AppendTag(dst, fieldService, wire.VarintType)
	dst = wire.AppendVarint(dst, uint64(service))
	dst = wire.AppendTag(dst, fieldPayload, wire.BytesType)
	dst = wire.AppendVarint(dst, uint64(len(payload)))
	return append(dst, payload...)
}

// AppendReceipt appends a Downstream message with an acknowledgement. It writes the
// first 256 services of unhandled, and returns how many it has written.
func AppendReceipt(dst []byte, acknowledged uint64, unhandled []Unhandled) ([]byte, int) {
	dst = wire.AppendTag(dst, fieldAcknowledged, wire.VarintType)
	dst = wire.AppendVarint(dst, acknowledged)
	unhandled = unhandled[:min(len(unhandled), maxUnhandled)]
	if len(unhandled) > 0 {
		dst, _ = wire.Append(dst, &Downstream{Unhandled: unhandled}, (*Downstream).fields)
	}
	return dst, len(unhandled)
}

// ParseDownstream decodes and checks a message of an acceptor. A receipt without
// unhandled services, as nearly every receipt is, is read by hand.
func ParseDownstream(b []byte) (Downstream, error) {
	if d, ok := plainReceipt(b); ok {
		return d, nil
	}
	var d Downstream
	if err := read(b, &d, (*Downstream).fields); err != nil {
		return Downstream{}, err
	}
	if len(b) == 0 || d.Welcome != nil && d.Refusal != nil {
		return Downstream{}, wire.Malformed("neither a welcome, nor a refusal, nor a receipt")
	}
	return d, nil
}

func (d *Downstream) fields(c *wire.Codec) {
	wire.Optional(c, fieldWelcome, &d.Welcome, (*Welcome).fields, (*Welcome).validate)
	wire.Optional(c, fieldRefusal, &d.Refusal, refusalFields)
	wire.Uint(c, fieldAcknowledged, &d.Acknowledged, math.MaxUint64)
	wire.Messages(c, fieldUnhandled, &d.Unhandled, maxUnhandled, (*Unhandled).fields, (*Unhandled).validate)
	wire.Row(c, fieldAnswers, func(b []byte) []byte { return b }, func(f *wire.Field) error {
		service, payload, err := parseEnvelope(f.Bytes)
		d.Answers = append(d.Answers, Answer{service, payload})
		return err
	})
}

func (u *Unhandled) fields(c *wire.Codec) {
	wire.Uint(c, fieldService, &u.Service, math.MaxUint16)
	wire.Uint(c, fieldMessages, &u.Messages, math.MaxUint64)
}

func (u *Unhandled) validate() error {
	if u.Service == 0 {
		return wire.Malformed("unhandled messages of no service")
	}
	return nil
}

// plainReceipt reads a receipt that has nothing but an acknowledgement and answers.
func plainReceipt(b []byte) (d Downstream, ok bool) {
	f, rest, err := wire.Next(b)
	if err != nil || f.Number != fieldAcknowledged || f.Type != wire.VarintType {
		return Downstream{}, false
	}
	d.Acknowledged = f.Value
	for len(rest) > 0 {
		num, typ, tag := wire.Tag(rest)
		if tag == 0 || num != fieldAnswers || typ != wire.BytesType {
			return Downstream{}, false
		}
		envelope, n := wire.Bytes(rest[tag:])
		service, payload, err := parseEnvelope(envelope)
		if n == 0 || err != nil || service == 0 {
			return Downstream{}, false
		}
		rest = rest[tag+n:]
		d.Answers = append(roomFor(d.Answers, rest, fieldAnswers), Answer{service, payload})
	}
	return d, true
}

// roomFor makes room for one more answer: once for all that the rest of the message has beside it, so that a list which
// grows does not cost many times what it has in the end.
func roomFor(list []Answer, rest []byte, number wire.Number) []Answer {
	if len(list) < cap(list) {
		return list
	}
	more := 1
	for len(rest) > 0 {
		f, after, err := wire.Next(rest)
		if err != nil {
			break // Whoever reads on finds that too.
		}
		if f.Number == number && len(f.Bytes) >= serviceBytes {
			more++
		}
		rest = after
	}
	room := make([]Answer, len(list), len(list)+more) // Not slices.Grow, which takes twice as much under the race detector.
	copy(room, list)
	return room
}
