// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"iter"
	"math"

	"github.com/quorate/quorate/machine/wire"
)

// Frames by hand: the sender begins a frame, appends an envelope for each message with
// lengths of a fixed width, and writes the number last, when the frame is sent. The
// receiver checks a frame as a whole with ParseFrame, and then walks its envelopes in
// place.

// Field numbers of Upstream and Envelope in transport.proto.
const (
	fieldHello     = 1
	fieldNumber    = 2
	fieldEnvelopes = 3
	fieldSaid      = 4

	fieldService = 1
	fieldPayload = 2
)

// The tags by which the messages of an opener are told apart.
const (
	tagHello  = fieldHello<<3 | byte(wire.BytesType)
	tagNumber = fieldNumber<<3 | byte(wire.Fixed64Type)
	tagSaid   = fieldSaid<<3 | byte(wire.BytesType)
)

// HeaderBytes is the length of the header that [Begin] appends.
const HeaderBytes = 1 + 8

// EnvelopeBytes is the most that an envelope adds to its payload.
const EnvelopeBytes = 1 + lengthBytes + 1 + 3 + 1 + lengthBytes

// lengthBytes is the width of the length fields of an envelope and its payload, which
// are reserved before the lengths are known: a varint of four bytes holds 28 bits.
const lengthBytes = 4

// ErrMalformed is wrapped by every decoding error of this package. It is the
// ErrMalformed of machine/wire.
var ErrMalformed = wire.ErrMalformed

// Begin appends the header of a frame whose number is not yet known.
func Begin(dst []byte) []byte {
	dst = wire.AppendTag(dst, fieldNumber, wire.Fixed64Type)
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
}

// SetNumber writes the number of a frame that [Begin] began.
func SetNumber(frame []byte, n uint64) {
	binary.LittleEndian.PutUint64(frame[1:HeaderBytes], n)
}

// AppendEnvelope appends an envelope, whose payload the function encode appends. It
// returns the extended slice and the length of the payload, which is negative when
// encode returned less than it was given. The payload must be shorter than 1<<28 bytes
// less the envelope.
func AppendEnvelope(dst []byte, service uint16, encode func([]byte) []byte) (frame []byte, payload int) {
	dst = wire.AppendTag(dst, fieldEnvelopes, wire.BytesType)
	outer := len(dst) + lengthBytes
	dst = append(dst, 0, 0, 0, 0)
	dst = wire.AppendTag(dst, fieldService, wire.VarintType)
	dst = wire.AppendVarint(dst, uint64(service))
	dst = wire.AppendTag(dst, fieldPayload, wire.BytesType)
	inner := len(dst) + lengthBytes
	dst = append(dst, 0, 0, 0, 0)
	dst = encode(dst)
	if len(dst) < inner {
		return dst, -1
	}
	putLength(dst[outer-lengthBytes:], len(dst)-outer)
	putLength(dst[inner-lengthBytes:], len(dst)-inner)
	return dst, len(dst) - inner
}

// putLength writes n as a varint of exactly four bytes.
func putLength(b []byte, n int) {
	b[0] = byte(n) | 0x80
	b[1] = byte(n>>7) | 0x80
	b[2] = byte(n>>14) | 0x80
	b[3] = byte(n>>21) & 0x7f
}

// Frame is a frame that was checked as a whole. It aliases the bytes that it was
// parsed from.
type Frame struct {
	Number   uint64
	Messages int
	body     []byte
}

// IsHello reports whether b is a Hello rather than a frame, by its first tag.
func IsHello(b []byte) bool {
	return len(b) > 0 && b[0] == tagHello
}

// ParseFrame checks a frame: a frame begins with its number, which is not zero, has at
// least one envelope, and every envelope has a service. Fields of later versions are
// skipped.
func ParseFrame(b []byte) (Frame, error) {
	if len(b) < HeaderBytes || b[0] != tagNumber {
		return Frame{}, wire.Malformed("a frame of %d bytes does not begin with its number", len(b))
	}
	f := Frame{Number: binary.LittleEndian.Uint64(b[1:HeaderBytes]), body: b[HeaderBytes:]}
	if f.Number == 0 {
		return Frame{}, wire.Malformed("frame number 0")
	}
	for rest := f.body; len(rest) > 0; {
		envelope, n, err := nextEnvelope(rest)
		if err != nil {
			return Frame{}, err
		}
		rest = rest[n:]
		if envelope == nil {
			continue
		}
		if _, _, err := parseEnvelope(envelope); err != nil {
			return Frame{}, err
		}
		f.Messages++
	}
	if f.Messages == 0 {
		return Frame{}, wire.Malformed("frame %d has no envelope", f.Number)
	}
	return f, nil
}

// Envelopes returns the services and payloads of the frame in order.
func (f Frame) Envelopes() iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for rest := f.body; len(rest) > 0; {
			envelope, n, err := nextEnvelope(rest)
			if err != nil {
				return
			}
			rest = rest[n:]
			if envelope == nil {
				continue
			}
			service, payload, err := parseEnvelope(envelope)
			if err != nil || !yield(service, payload) {
				return
			}
		}
	}
}

// nextEnvelope returns the next field of a frame and its length on the wire. The
// envelope is nil when the field is not an envelope but of a later version.
func nextEnvelope(b []byte) (envelope []byte, n int, err error) {
	num, typ, tag := wire.Tag(b)
	if tag > 0 && num == fieldEnvelopes && typ == wire.BytesType {
		envelope, n = wire.Bytes(b[tag:])
		if len(envelope) == 0 {
			return nil, 0, wire.Malformed("envelope that is cut off, or without a service")
		}
		return envelope, tag + n, nil
	}
	f, _, err := wire.Next(b)
	if err == nil && f.Number <= fieldEnvelopes {
		err = wire.Malformed("field %d of wire type %d in a frame", f.Number, f.Type)
	}
	return nil, len(f.Raw), err
}

// parseEnvelope returns service and payload of an envelope. As in protobuf, the last
// occurrence of a repeated scalar counts.
func parseEnvelope(b []byte) (service uint16, payload []byte, err error) {
	for len(b) > 0 {
		num, typ, n := wire.Tag(b)
		switch {
		case num == fieldService && typ == wire.VarintType:
			v, size := wire.Varint(b[n:])
			if size == 0 || v > math.MaxUint16 {
				return 0, nil, wire.Malformed("service %d, or none", v)
			}
			service, b = uint16(v), b[n+size:]
		case num == fieldPayload && typ == wire.BytesType:
			var size int
			if payload, size = wire.Bytes(b[n:]); size == 0 {
				return 0, nil, wire.Malformed("payload that is cut off")
			}
			b = b[n+size:]
		default:
			var f wire.Field
			if f, b, err = wire.Next(b); err != nil {
				return 0, nil, err
			}
			if f.Number <= fieldPayload {
				return 0, nil, wire.Malformed("field %d of wire type %d in an envelope", f.Number, f.Type)
			}
		}
	}
	if service == 0 {
		return 0, nil, wire.Malformed("envelope without a service")
	}
	return service, payload, nil
}
