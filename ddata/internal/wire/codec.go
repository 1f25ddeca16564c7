// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"math"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
)

// An envelope is a message of protobuf: the fields of its header have numbers up to 15, and exactly one field above
// them is the body, by the list in bodies.go.

// The fields of an envelope.
const (
	envelopeGroup    = 1
	envelopeFrom     = 2
	envelopeTurn     = 3
	envelopeLineage  = 4
	envelopeGen      = 5
	envelopeFlags    = 6
	envelopeRegister = 7
	envelopeLoaded   = 8
	envelopeWritten  = 9
	envelopeRestarts = 10
	envelopePart     = 15 // A part of a message that was cut, see [Cut].
	envelopeBody     = 16 // The first number of a body.
)

// The flags of an envelope. Further ones are those of a later version, and are ignored.
const (
	flagSealed = 1 << iota
	flagCaught
	flagAgrees
	flagApart
	flagOlder
	flagUnsure
	flagSuspended
)

// ErrMalformed is wrapped by every error of decoding that does not wrap [ErrUnknown]. It is the error of machine/wire.
var ErrMalformed = wire.ErrMalformed

// ErrUnknown is returned, wrapped, by [Codec.Decode] for an envelope with a body that this
// version does not know: a newer node may send it.
var ErrUnknown = errors.New("a body of an unknown number")

// ErrForeign is returned, wrapped, by encoders for a value that is no message of package protocol, or that its machine
// never makes.
var ErrForeign = errors.New("not a message of distributed data")

// Types knows the types of values by their names. It is asked by several goroutines.
type Types interface {
	Type(name string) (crdt.Type, bool)
}

// Codec is the codec of the messages between replicas.
type Codec struct {
	// Types are the types that this node knows. What is of another type decodes into a
	// [table.Unknown].
	Types Types
}

var _ machine.Codec = Codec{}

// Append appends the encoding of a [protocol.Envelope]. Equal envelopes have equal bytes.
// The errors wrap [ErrForeign], or are that of a type that cannot encode its value.
func (c Codec) Append(dst []byte, message any) ([]byte, error) {
	m, ok := message.(protocol.Envelope)
	if !ok {
		return dst, foreign("a value of type %T", message)
	}
	e := newEncoder(dst)
	appendHeader(e, &m)
	if !appendBody(e, m.Body) {
		e.fail(foreign("a body of type %T", m.Body))
	}
	return e.end(dst)
}

// Decode returns the [protocol.Envelope] that b holds. It keeps no part of b.
func (c Codec) Decode(b []byte) (any, error) {
	var m protocol.Envelope
	d := decoder{types: c.Types}
	err := wire.Each(b, func(f *wire.Field) error {
		if f.Number >= envelopeBody {
			return d.body(&m, f)
		}
		return setHeader(&m, f)
	})
	if err != nil {
		return nil, err
	}
	if m.Body == nil {
		return nil, wire.Malformed("an envelope without a body")
	}
	return m, nil
}

// appendHeader appends the fields of an envelope other than its body.
func appendHeader(e *encoder, m *protocol.Envelope) {
	e.uint(envelopeGroup, uint64(m.Group))
	e.fixed(envelopeFrom, uint64(m.From))
	e.uint(envelopeTurn, uint64(m.Lineage.Turn))
	e.fixed(envelopeLineage, m.Lineage.ID)
	e.uint(envelopeGen, m.Gen)
	e.uint(envelopeFlags, flagsOf(m))
	if m.Register != nil {
		b, at := wire.Begin(e.b, envelopeRegister)
		b, err := wire.Append(b, m.Register, zonesOf(m.Register).register)
		e.b = wire.End(b, at)
		e.fail(err)
	}
	e.uint(envelopeLoaded, m.Loaded)
	e.uint(envelopeWritten, m.Written)
	e.uint(envelopeRestarts, m.Restarts)
}

// flagsOf returns the flags of an envelope.
func flagsOf(m *protocol.Envelope) (flags uint64) {
	for _, f := range []struct {
		set  bool
		flag uint64
	}{{m.Sealed, flagSealed}, {m.Caught, flagCaught}, {m.Agrees, flagAgrees}, {m.Apart, flagApart}, {m.Older, flagOlder}, {m.Unsure, flagUnsure}, {m.Suspended, flagSuspended}} {
		if f.set {
			flags |= f.flag
		}
	}
	return flags
}

// setHeader stores a field of the header.
func setHeader(m *protocol.Envelope, f *wire.Field) error {
	switch f.Number {
	case envelopeGroup:
		return wire.Set(&m.Group, f, math.MaxUint8)
	case envelopeFrom:
		return wire.SetFixed(&m.From, f)
	case envelopeTurn:
		return wire.Set(&m.Lineage.Turn, f, math.MaxUint32)
	case envelopeLineage:
		return wire.SetFixed(&m.Lineage.ID, f)
	case envelopeGen:
		return wire.Set(&m.Gen, f, math.MaxUint64)
	case envelopeFlags:
		flags, err := f.Uint(math.MaxUint64)
		m.Sealed, m.Caught = flags&flagSealed != 0, flags&flagCaught != 0
		m.Agrees, m.Apart, m.Older = flags&flagAgrees != 0, flags&flagApart != 0, flags&flagOlder != 0
		m.Unsure, m.Suspended = flags&flagUnsure != 0, flags&flagSuspended != 0
		return err
	case envelopeRegister:
		if m.Register != nil {
			return wire.Malformed("an envelope with two registers")
		}
		return setRegister(&m.Register, f)
	case envelopeLoaded:
		return wire.Set(&m.Loaded, f, math.MaxUint64)
	case envelopeWritten:
		return wire.Set(&m.Written, f, math.MaxUint64)
	case envelopeRestarts:
		return wire.Set(&m.Restarts, f, math.MaxUint64)
	case envelopePart:
		return wire.Malformed("a part of a parcel, which has to be joined first")
	}
	return nil
}

// setRegister stores a register.
func setRegister(dst **protocol.Register, f *wire.Field) error {
	b, err := inner(f)
	if err != nil {
		return err
	}
	z, r := new(zones), new(protocol.Register)
	if err := wire.Read(b, r, z.register); err != nil {
		return err
	}
	*dst = r
	return z.check(r)
}

// unknown returns an error that wraps [ErrUnknown].
func unknown(n wire.Number) error { return fmt.Errorf("%w: %d", ErrUnknown, n) }

// foreign returns an error that wraps [ErrForeign].
func foreign(format string, values ...any) error {
	return fmt.Errorf("%w: %s", ErrForeign, fmt.Sprintf(format, values...))
}
