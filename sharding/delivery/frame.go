// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/hex"
	"fmt"
	"reflect"

	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/delivery/internal/producer"
)

// The messages between a producer and an entity, and their encoding: a [Frame] with messages, and the [Ack] that
// answers it.

// Session names a numbering of messages. Each producer draws one when it starts, so that the numbers of two producers,
// or of one producer before and after a restart, are told apart.
type Session [16]byte

// MarshalText returns the session in hexadecimal digits.
func (s Session) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText reads 32 hexadecimal digits.
func (s *Session) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(s)) {
		return fmt.Errorf("delivery: a session has %d hexadecimal digits, not %d", hex.EncodedLen(len(s)), len(text))
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// Frame is the message of a kind whose entities take deliveries: messages of one producer in their order, or a single
// one without a number, see [Plain].
type Frame[M any] struct {
	session Session
	items   []item[M]
}

// item is one message of a frame.
type item[M any] struct {
	number  uint64
	message M
	encoded []byte // Nil: not encoded yet.
}

// Plain returns a frame for [sharding.Region.Tell] and [sharding.Ask]. Its message is one as without this package: it
// is delivered at most once, and may be answered. The message must not be nil.
func Plain[M any](message M) *Frame[M] { return &Frame[M]{items: []item[M]{{message: message}}} }

// plain reports whether a frame is not from a producer.
func (f *Frame[M]) plain() bool { return f.session == Session{} }

// Ack is the reply of an entity to a frame.
type Ack struct {
	session   Session
	confirmed uint64 // The last message of the frame that was handled; 0: none.
	demand    int    // How many messages the next frame may have.
}

// answer returns an ack as the machine of a producer takes it.
func (a *Ack) answer() producer.Answer {
	return producer.Answer{Session: producer.Session(a.session), Confirmed: a.confirmed, Demand: a.demand}
}

// MaxFrame is the largest number of messages of a frame.
const MaxFrame = 1000

const maxEncoded = 1 << 24 // More than any frame can have.

// The numbers of the fields.
const (
	frameSession, frameItem             wire.Number = 1, 2
	itemNumber, itemMessage             wire.Number = 1, 2
	ackSession, ackConfirmed, ackDemand wire.Number = 1, 2, 3
)

// Codec returns the codec of a kind whose entities take deliveries of messages M. Inner encodes these messages, and
// replies other than those of this package; nil: [sharding.Protobuf].
func Codec[M any](inner sharding.Codec) sharding.Codec { return codec[M]{innerOf(inner)} }

func innerOf(inner sharding.Codec) sharding.Codec {
	if inner == nil {
		return sharding.Protobuf{}
	}
	return inner
}

type codec[M any] struct{ inner sharding.Codec }

// Name returns "delivery+" and the name of the inner codec.
func (c codec[M]) Name() string { return "delivery+" + c.inner.Name() }

// Check fails if M is no pointer, or nothing for the inner codec.
func (c codec[M]) Check(message any) error {
	if _, ok := message.(*Frame[M]); !ok {
		return c.inner.Check(message)
	}
	empty, err := blank[M]()
	if err != nil {
		return err
	}
	return c.inner.Check(empty)
}

// blank returns an empty message.
func blank[M any]() (M, error) {
	t := reflect.TypeFor[M]()
	if t.Kind() != reflect.Pointer {
		var none M
		return none, fmt.Errorf("messages are pointers, not %s", t)
	}
	return reflect.New(t.Elem()).Interface().(M), nil
}

// Append encodes frames and acks; anything else is for the inner codec.
func (c codec[M]) Append(dst []byte, message any) ([]byte, error) {
	switch m := message.(type) {
	case *Ack:
		dst = wire.AppendBytes(dst, ackSession, m.session[:])
		dst = wire.AppendUint(dst, ackConfirmed, m.confirmed)
		return wire.AppendUint(dst, ackDemand, uint64(max(m.demand, 0))), nil
	case *Frame[M]:
		return c.appendFrame(dst, m)
	default:
		return c.inner.Append(dst, message)
	}
}

func (c codec[M]) appendFrame(dst []byte, f *Frame[M]) (_ []byte, err error) {
	if !f.plain() {
		dst = wire.AppendBytes(dst, frameSession, f.session[:])
	}
	for _, i := range f.items {
		var at, in int
		dst, at = wire.Begin(dst, frameItem)
		dst = wire.AppendUint(dst, itemNumber, i.number)
		dst, in = wire.Begin(dst, itemMessage)
		if i.encoded != nil {
			dst = append(dst, i.encoded...)
		} else if dst, err = c.inner.Append(dst, i.message); err != nil {
			return dst, err
		}
		dst = wire.End(wire.End(dst, in), at)
	}
	return dst, nil
}

// Decode decodes frames and acks; anything else is for the inner codec.
func (c codec[M]) Decode(b []byte, message any) error {
	switch m := message.(type) {
	case *Ack:
		return decodeAck(b, m)
	case *Frame[M]:
		if err := wire.Each(b, func(f *wire.Field) error { return c.setFrame(m, f) }); err != nil {
			return err
		}
		return m.check()
	default:
		return c.inner.Decode(b, message)
	}
}

func (c codec[M]) setFrame(m *Frame[M], f *wire.Field) error {
	switch f.Number {
	case frameSession:
		return setSession(&m.session, f)
	case frameItem:
		if len(m.items) == MaxFrame {
			return wire.Malformed("a frame has at most %d messages", MaxFrame)
		}
		var i item[M]
		var encoded []byte
		err := f.Each(func(f *wire.Field) (err error) {
			switch f.Number {
			case itemNumber:
				i.number, err = f.Uint(^uint64(0))
			case itemMessage:
				encoded, err = f.Data(maxEncoded)
			}
			return err
		})
		if err != nil {
			return err
		}
		if i.message, err = c.message(encoded); err != nil {
			return err
		}
		m.items = append(m.items, i)
	}
	return nil
}

// message decodes a message.
func (c codec[M]) message(encoded []byte) (M, error) {
	message, err := blank[M]()
	if err == nil {
		err = c.inner.Decode(encoded, message)
	}
	return message, err
}

// check refuses a frame that no producer sends: its numbers have to rise, from 1 or more; and a frame without numbers
// has one message.
func (f *Frame[M]) check() error {
	if f.plain() {
		if len(f.items) != 1 || f.items[0].number != 0 {
			return wire.Malformed("a frame without a session has one message, without a number")
		}
		return nil
	}
	last := uint64(0)
	for _, i := range f.items {
		if i.number <= last {
			return wire.Malformed("message %d follows message %d", i.number, last)
		}
		last = i.number
	}
	return nil
}

func decodeAck(b []byte, a *Ack) error {
	return wire.Each(b, func(f *wire.Field) (err error) {
		switch f.Number {
		case ackSession:
			err = setSession(&a.session, f)
		case ackConfirmed:
			a.confirmed, err = f.Uint(^uint64(0))
		case ackDemand:
			var demand uint64
			demand, err = f.Uint(MaxFrame)
			a.demand = int(demand) // At most MaxFrame.
		}
		return err
	})
}

func setSession(s *Session, f *wire.Field) error {
	b, err := f.Data(len(s))
	if err == nil && len(b) != len(s) {
		err = wire.Malformed("a session has %d bytes, not %d", len(s), len(b))
	}
	copy(s[:], b)
	return err
}
