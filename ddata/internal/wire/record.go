// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine/wire"
)

// What a durable replica keeps on its disk: a format version, then fields of protobuf. Each
// is complete in itself.

// format is the first byte of everything that is stored.
const format = 1

// recordEntry is the field of a record with the entry, behind those of the names.
const recordEntry = 3

// AppendRecord appends what is stored of an entry under its key, which is not part of it.
// The errors are those of [Codec.Append].
func AppendRecord(dst []byte, x table.Entry) ([]byte, error) {
	e := newEncoder(append(dst, format))
	x.Key = ""
	e.entry(recordEntry, &x)
	return e.end(dst)
}

// DecodeRecord returns the entry that was stored under a key. It keeps no part of b. The
// value of a type that is not known is a [table.Unknown].
func DecodeRecord(types Types, key string, b []byte) (x table.Entry, err error) {
	if b, err = formatted(b); err != nil {
		return x, err
	}
	d := decoder{types: types, in: b}
	err = fields(b, func(f *wire.Field) error {
		if f.Number != recordEntry {
			return d.name(f)
		}
		b, err := inner(f)
		if err == nil {
			x, err = d.entry(b, key)
		}
		return err
	})
	if err == nil && x.State == 0 {
		err = wire.Malformed("a record without an entry")
	}
	if err != nil {
		return table.Entry{}, err
	}
	x.Key = key
	return x, nil
}

// formatted returns what is behind the format version.
func formatted(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, wire.Malformed("there are no bytes")
	}
	if b[0] != format {
		return nil, wire.Malformed("format version %d, not %d", b[0], format)
	}
	return b[1:], nil
}

// The fields of what a durable replica remembers beside its entries.
const (
	metaRegister = 1
	metaCaught   = 2
	metaPromised = 3
	metaAccepted = 4
	metaValue    = 5
	metaGen      = 6
	metaTombs    = 7
	metaWritten  = 8
	metaOlder    = 9
	metaShown    = 10
	metaUpTo     = 11
	metaLate     = 12
	metaBehind   = 13
	metaRestarts = 14
)

// AppendMeta appends what a durable replica remembers beside its entries.
func AppendMeta(dst []byte, m protocol.Meta) []byte {
	e := newEncoder(append(dst, format))
	e.register(metaRegister, m.Register)
	e.flag(metaCaught, m.Caught)
	e.ballot(metaPromised, m.Promised)
	e.ballot(metaAccepted, m.Accepted)
	e.register(metaValue, m.Value)
	e.uint(metaGen, m.Confirmed.Gen)
	e.fixed(metaTombs, m.Confirmed.Tombs)
	e.uint(metaWritten, m.Written)
	e.fixed(metaOlder, uint64(m.Older))
	for _, s := range m.Shown {
		e.shown(metaShown, s)
	}
	e.uint(metaUpTo, m.Confirmed.UpTo)
	e.each(metaLate, m.Confirmed.Late)
	e.flag(metaBehind, m.Behind)
	e.uint(metaRestarts, m.Restarts)
	return e.b
}

// DecodeMeta returns what AppendMeta has written.
func DecodeMeta(b []byte) (m protocol.Meta, err error) {
	if b, err = formatted(b); err != nil {
		return m, err
	}
	err = fields(b, func(f *wire.Field) error {
		switch f.Number {
		case metaRegister:
			return setRegister(&m.Register, f)
		case metaCaught:
			return wire.SetBool(&m.Caught, f)
		case metaPromised:
			return setBallot(&m.Promised, f)
		case metaAccepted:
			return setBallot(&m.Accepted, f)
		case metaValue:
			return setRegister(&m.Value, f)
		case metaGen:
			return wire.Set(&m.Confirmed.Gen, f, math.MaxUint64)
		case metaTombs:
			return wire.SetFixed(&m.Confirmed.Tombs, f)
		case metaUpTo:
			return wire.Set(&m.Confirmed.UpTo, f, math.MaxUint64)
		case metaLate:
			key, err := key(f)
			if m.Confirmed.Late == nil {
				m.Confirmed.Late = make([]string, 0, count(b, metaLate))
			}
			m.Confirmed.Late = append(m.Confirmed.Late, key)
			return err
		case metaWritten:
			return wire.Set(&m.Written, f, math.MaxUint64)
		case metaOlder:
			return wire.SetFixed(&m.Older, f)
		case metaBehind:
			return wire.SetBool(&m.Behind, f)
		case metaRestarts:
			return wire.Set(&m.Restarts, f, math.MaxUint64)
		case metaShown:
			return addShown(&m.Shown, f)
		}
		return nil
	})
	if err != nil {
		return protocol.Meta{}, err
	}
	return m, nil
}
