// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
)

// What a sender may send is checked first ([Admit]). [Codec] then encodes and decodes by
// the list of types in messages.go, which has the table of each message or what it is made of.

// MaxSize is the size of the largest message, in bytes. A state of
// [gossip.MaxMembers] members is well below it.
const MaxSize = 4 << 20

// ErrMalformed is what the errors of [Codec.Decode] unwrap to, unless they unwrap to
// [gossip.ErrInvalid]. It is the error of machine/wire.
var ErrMalformed = wire.ErrMalformed

// ErrForeign is returned by [Codec.Append] for a value that is not a message of package
// protocol.
var ErrForeign = errors.New("wire: not a message of membership")

// Sender is what the receiver of a message knows about its sender.
type Sender struct {
	// Member says that the sender is a member of the receiver's state.
	Member bool
	// Asked says that the receiver has asked the sender to let it join.
	Asked bool
}

// The largest messages in bytes: of any node, and of a member or of the node that was
// asked to let this one join. Their states may have [MaxSize] instead.
const (
	MaxStrangerSize = 64 << 10
	MaxControlSize  = 256 << 10
)

// Admit returns nil for a message that its sender may send at this size, otherwise why it
// is not decoded. It looks at the sender and at the type that the first bytes name.
func Admit(b []byte, from Sender) error {
	switch {
	case len(b) <= MaxStrangerSize:
		return nil
	case !from.Member && !from.Asked:
		return wire.Malformed("%d bytes by who is no member here, at most %d", len(b), MaxStrangerSize)
	}
	number, _, n := wire.Tag(b)
	if n == 0 {
		return wire.Malformed("%d bytes that begin with no field", len(b))
	}
	of := typeOf(number)
	switch {
	case of == nil:
		return wire.Malformed("%d bytes of an unknown type", len(b))
	case of.size == sizeOfWelcome:
		if !from.Asked {
			return wire.Malformed("a welcome of %d bytes by who was not asked", len(b))
		}
	case !from.Member:
		return wire.Malformed("%d bytes of %s by who is no member here", len(b), of.name)
	case of.size == sizeOfState:
	case len(b) > MaxControlSize:
		return wire.Malformed("%d bytes of %s, at most %d", len(b), of.name, MaxControlSize)
	}
	return nil
}

// Unknown is a message of a type that this version does not know.
type Unknown struct{}

// Codec is the codec of the membership messages. The zero value is ready for
// use.
type Codec struct{}

var _ machine.Codec = Codec{}

// Append appends the encoding of a message of package protocol.
func (Codec) Append(dst []byte, message any) ([]byte, error) {
	for i := range types {
		if types[i].is(message) {
			b, at := wire.Begin(dst, types[i].number)
			b, err := types[i].appendTo(b, message)
			if err != nil {
				return dst, err
			}
			return wire.End(b, at), nil
		}
	}
	return dst, fmt.Errorf("%w: %T", ErrForeign, message)
}

// Decode returns the message that b holds. It keeps no part of b.
func (Codec) Decode(b []byte) (message any, err error) {
	if len(b) > MaxSize {
		return nil, wire.Malformed("%d bytes, at most %d", len(b), MaxSize)
	}
	for len(b) > 0 {
		var f wire.Field
		if f, b, err = wire.Next(b); err != nil {
			return nil, err
		}
		of := typeOf(f.Number)
		if of == nil {
			continue
		}
		if message != nil {
			return nil, wire.Malformed("a message of two types, or twice")
		}
		inside, err := f.Data(MaxSize)
		if err != nil {
			return nil, err
		}
		if message, err = of.read(inside); err != nil {
			return nil, err
		}
	}
	if message == nil {
		return Unknown{}, nil
	}
	return message, nil
}
