// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
)

// What a durable replica stores: records of entries, and its [protocol.Meta]. Each is a format version, and then fields
// of protobuf, and refers to no other one.

// format is the first byte of everything that is stored.
const format = 1

// recordEntry is the field of a record with the entry, behind those of the names.
const recordEntry = 3

// AppendRecord appends the record of an entry, which is stored under its key and does not contain it. The errors are
// those of [Codec.Append].
func AppendRecord(dst []byte, x table.Entry) ([]byte, error) {
	e := newEncoder(append(dst, format))
	x.Key = ""
	e.entry(recordEntry, &x)
	return e.end(dst)
}

// DecodeRecord returns the entry of a record that was stored under a key. It keeps no part of b. If the type of the
// value is not known, the value is a [table.Unknown].
func DecodeRecord(types Types, key string, b []byte) (x table.Entry, err error) {
	if b, err = afterFormat(b); err != nil {
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

// afterFormat returns what comes after the format version, which it checks.
func afterFormat(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, wire.Malformed("there are no bytes")
	}
	if b[0] != format {
		return nil, wire.Malformed("format version %d, not %d", b[0], format)
	}
	return b[1:], nil
}

// meta is the table of what a durable replica remembers beside its entries.
func meta(m *protocol.Meta, c *wire.Codec) {
	register(c, 1, &m.Register)
	wire.Bool(c, 2, &m.Caught)
	wire.Sparse(c, 3, &m.Promised, ballot)
	wire.Sparse(c, 4, &m.Accepted, ballot)
	register(c, 5, &m.Value)
	wire.Uint(c, 6, &m.Confirmed.Gen, math.MaxUint64)
	wire.Fixed(c, 7, &m.Confirmed.Tombs)
	wire.Uint(c, 8, &m.Written, math.MaxUint64)
	wire.Fixed(c, 9, &m.Older)
	wire.Messages(c, 10, &m.Shown, math.MaxInt, storeVersion)
	wire.Uint(c, 11, &m.Confirmed.UpTo, math.MaxUint64)
	keys(c, 12, &m.Confirmed.Late)
	wire.Bool(c, 13, &m.Behind)
	wire.Uint(c, 14, &m.Restarts, math.MaxUint64)
}

// AppendMeta appends what a durable replica remembers beside its entries.
func AppendMeta(dst []byte, m protocol.Meta) []byte {
	b, err := wire.Append(append(dst, format), &m, meta)
	machine.Assert(err == nil, "what a replica remembers has a byte form", "error", err)
	return b
}

// DecodeMeta returns what AppendMeta has written.
func DecodeMeta(b []byte) (m protocol.Meta, err error) {
	if b, err = afterFormat(b); err != nil {
		return m, err
	}
	if err = wire.Read(b, &m, meta); err == nil {
		err = checkStoreVersions(m.Shown)
	}
	if err != nil {
		return protocol.Meta{}, err
	}
	return m, nil
}
