// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/binary"
	"fmt"
)

// A message is twelve bytes and a payload: the number of its sender and its own number in
// the sequence of that sender, from which the receiver tells which messages were lost,
// doubled or overtaken.

// HeaderBytes is the size of sender and sequence number in a message.
const HeaderBytes = 12

// askBit marks in the encoded sender that an answer is wanted.
const askBit = 1 << 31

// Message is a message to an entity. It is not changed once it was sent.
type Message struct {
	Sender  uint32
	Seq     uint64
	Ask     bool
	Payload []byte
}

// appendHeader appends sender and sequence number.
func appendHeader(dst []byte, sender uint32, seq uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(dst, sender), seq)
}

// PutHeader writes sender and sequence number to the beginning of b.
func PutHeader(b []byte, sender uint32, seq uint64) {
	binary.LittleEndian.PutUint32(b, sender)
	binary.LittleEndian.PutUint64(b[4:], seq)
}

// Header reads sender and sequence number.
func Header(b []byte) (sender uint32, seq uint64) {
	return binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[4:])
}

// Codec encodes messages: twelve bytes and the payload. It is as plain as possible, so
// that the way of a message is measured and not the encoding.
type Codec struct{}

// Name names the encoding.
func (Codec) Name() string { return "bench" }

// Check fails for other messages.
func (Codec) Check(m any) error {
	if _, ok := m.(*Message); !ok {
		return fmt.Errorf("%T is not a message of the benchmark", m)
	}
	return nil
}

// Append appends the encoding.
func (c Codec) Append(dst []byte, m any) ([]byte, error) {
	in, ok := m.(*Message)
	if !ok {
		return dst, c.Check(m)
	}
	sender := in.Sender
	if in.Ask {
		sender |= askBit
	}
	return append(appendHeader(dst, sender, in.Seq), in.Payload...), nil
}

// Decode decodes b and keeps nothing of it.
func (c Codec) Decode(b []byte, m any) error {
	out, ok := m.(*Message)
	if !ok {
		return c.Check(m)
	}
	if len(b) < HeaderBytes {
		return fmt.Errorf("a message of %d bytes, want at least %d", len(b), HeaderBytes)
	}
	out.Sender, out.Seq = Header(b)
	out.Ask = out.Sender&askBit != 0
	out.Sender &^= askBit
	out.Payload = append([]byte(nil), b[HeaderBytes:]...)
	return nil
}
