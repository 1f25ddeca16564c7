// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine/wire"
)

// The bodies of envelopes are a table with a row for each: its number, and how its fields
// are appended and read. The functions of the rows are in register.go (those that decide a
// register), data.go (changes, entries, reads), remote.go (what other nodes hold),
// compare.go (passes and sweeps) and age.go (how old stores are).

// row is a body that an envelope can have.
type row struct {
	number wire.Number
	of     any // The zero value of the body.
	// appendTo appends the body, and reports whether it is this one.
	appendTo func(e *encoder, body any) bool
	read     func(d *decoder, b []byte) (any, error)
}

// body returns a row. A body that was read has to pass the check, if there is one.
func body[T any](n wire.Number, appendTo func(*encoder, T), set func(*decoder, *T, *wire.Field) error, check ...func(*decoder, *T) error) row {
	return row{
		number: n, of: *new(T),
		appendTo: func(e *encoder, body any) bool {
			m, ok := body.(T)
			if ok {
				b, at := wire.Begin(e.b, n)
				e.b = b
				appendTo(e, m)
				e.b = wire.End(e.b, at)
			}
			return ok
		},
		read: func(d *decoder, b []byte) (any, error) {
			var m T
			var f wire.Field
			var err error
			for d.in = b; len(d.in) > 0; {
				var rest []byte
				if f, rest, err = wire.Next(d.in); err != nil {
					return nil, err
				}
				if err := set(d, &m, &f); err != nil {
					return nil, err
				}
				d.in = rest
			}
			for _, c := range check {
				if err := c(d, &m); err != nil {
					return nil, err
				}
			}
			return m, nil
		},
	}
}

// rows are the bodies. The numbers are part of the wire: a number is never used again. The
// frequent ones come first, because the rows are tried in their order.
var rows = []row{ //nolint:gochecknoglobals // A constant table.
	body(21, appendDeltas, setDeltas),
	body(22, appendDeltasTaken, setDeltasTaken),
	body(23, appendPut, setPut),
	body(24, appendPutTaken, setPutTaken),
	body(25, appendAsk, setAsk, checkAsk),
	body(26, appendAnswer, setAnswer),
	body(27, appendCompare, setCompare),
	body(28, appendGroups, setGroups),
	body(29, appendAskBuckets, setAskBuckets),
	body(30, appendBucketHashes, setBucketHashes),
	body(31, appendPull, setPull),
	body(32, appendPulled, setPulled, checkPulled),
	body(33, appendSweep, setSweep),
	body(34, appendSwept, setSwept),
	body(35, appendBorrow, setBorrow, checkBorrow),
	body(36, appendLent, setLent),
	body(37, appendCommit, setCommit, checkCommit),
	body(38, appendRemoveKey, setRemoveKey, checkRemoveKey),
	body(39, appendCommitted, setCommitted),
	body(16, appendHello, setHello),
	body(17, appendPrepare, setPrepare),
	body(18, appendPromise, setPromise),
	body(19, appendAccept, setAccept, checkAccept),
	body(20, appendAccepted, setAccepted),
	body(40, appendAged, setAged),
}

// appendBody appends the body of an envelope, and reports whether it is in the table.
func appendBody(e *encoder, of any) bool {
	for i := range rows {
		if rows[i].appendTo(e, of) {
			return true
		}
	}
	return false
}

// body stores the body of an envelope, of which there is one.
func (d *decoder) body(m *protocol.Envelope, f *wire.Field) error {
	if m.Body != nil {
		return wire.Malformed("an envelope with two bodies")
	}
	b, err := inner(f)
	if err != nil {
		return err
	}
	for i := range rows {
		if rows[i].number == f.Number {
			m.Body, err = rows[i].read(d, b)
			return err
		}
	}
	return unknown(f.Number)
}
