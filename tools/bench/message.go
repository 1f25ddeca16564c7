// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/binary"
	"fmt"

	"github.com/quorate/quorate/sharding"
)

// headerBytes is what sender and sequence number take of a message.
const headerBytes = 12

// askBit marks in the encoded sender that an answer is wanted.
const askBit = 1 << 31

// message is what is sent to entities. It is not changed once it was sent.
type message struct {
	sender  uint32
	seq     uint64
	ask     bool
	payload []byte
}

// appendHeader appends sender and sequence number.
func appendHeader(dst []byte, sender uint32, seq uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(dst, sender), seq)
}

// putHeader writes sender and sequence number to the beginning of b.
func putHeader(b []byte, sender uint32, seq uint64) {
	binary.LittleEndian.PutUint32(b, sender)
	binary.LittleEndian.PutUint64(b[4:], seq)
}

// header reads sender and sequence number.
func header(b []byte) (sender uint32, seq uint64) {
	return binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[4:])
}

// codec encodes messages: twelve bytes and the payload. It is as plain as a
// codec can be, so that what is measured is the way and not the encoding.
type codec struct{}

var _ sharding.Codec = codec{}

// Name names the encoding.
func (codec) Name() string { return "bench" }

// Check fails for other messages.
func (codec) Check(m any) error {
	if _, ok := m.(*message); !ok {
		return fmt.Errorf("%T is not a message of the benchmark", m)
	}
	return nil
}

// Size returns the exact size.
func (codec) Size(m any) int {
	if m, ok := m.(*message); ok {
		return headerBytes + len(m.payload)
	}
	return 0
}

// Append appends the encoding.
func (c codec) Append(dst []byte, m any) ([]byte, error) {
	in, ok := m.(*message)
	if !ok {
		return dst, c.Check(m)
	}
	sender := in.sender
	if in.ask {
		sender |= askBit
	}
	return append(appendHeader(dst, sender, in.seq), in.payload...), nil
}

// Decode decodes b and keeps nothing of it.
func (c codec) Decode(b []byte, m any) error {
	out, ok := m.(*message)
	if !ok {
		return c.Check(m)
	}
	if len(b) < headerBytes {
		return fmt.Errorf("a message of %d bytes, want at least %d", len(b), headerBytes)
	}
	out.sender, out.seq = header(b)
	out.ask = out.sender&askBit != 0
	out.sender &^= askBit
	out.payload = append([]byte(nil), b[headerBytes:]...)
	return nil
}

// kindName is the name of the one kind of entities that an experiment uses.
const kindName = "bench"

// probe is an entity that checks what it gets, and answers when asked.
type probe struct{ *receiver }

// Receive checks a message. The answer is the message itself.
func (p probe) Receive(c *sharding.Context, m *message) error {
	p.take(m.sender, m.seq, headerBytes+len(m.payload))
	if m.ask {
		return c.Reply(m)
	}
	return nil
}

// probes describes entities that check messages of so many senders.
func probes(t *tally, senders, size int, role string) sharding.Kind[*message] {
	return sharding.Kind[*message]{
		Name: kindName, Role: role, Codec: codec{},
		New: func(*sharding.Context) sharding.Entity[*message] { return probe{t.receiver(senders, size)} },
	}
}
