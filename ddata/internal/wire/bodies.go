// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine/wire"
)

// The bodies of envelopes are a list with a row for each: its number, and the table of its fields. The tables are in
// register.go (those that decide a register), data.go (changes, entries, reads), remote.go (what other nodes hold),
// compare.go (passes and sweeps) and storeversion.go (stores that are older than others remember).

// row is one of the bodies that an envelope can have.
type row struct {
	number wire.Number
	// appendTo appends the body if it is of the type of the row, and reports whether it is.
	appendTo func(e *encoder, body any) bool
	read     func(d *decoder, b []byte) (any, error)
}

// scope is the encoder or the decoder of the message that a table of fields is used for: it has the names of types and
// the origins that the message has used.
type scope struct {
	e *encoder // Nil while a message is read.
	d *decoder // Nil while a message is written.
}

// valued returns the row of a body with values, by the table of its fields. A body that was read has to pass the
// checks.
func valued[T any](n wire.Number, table func(scope, *T, *wire.Codec), checks ...func(scope, *T) error) row {
	write := func(e *encoder, m T) {
		b, at := wire.Begin(e.b, n)
		b, err := wire.Append(b, &m, func(m *T, c *wire.Codec) { table(scope{e: e}, m, c) })
		if e.b = b; err != nil {
			e.fail(err)
		}
		e.b = wire.End(e.b, at)
	}
	return row{
		number: n,
		appendTo: func(e *encoder, body any) bool {
			if _, ok := body.(T); !ok {
				return false
			}
			write(e, body.(T))
			return true
		},
		read: func(d *decoder, b []byte) (any, error) {
			var m T
			d.in = b
			if err := wire.Read(b, &m, func(m *T, c *wire.Codec) { table(scope{d: d}, m, c) }); err != nil {
				return nil, err
			}
			for _, check := range checks {
				if err := check(scope{d: d}, &m); err != nil {
					return nil, err
				}
			}
			return m, nil
		},
	}
}

// plain is [valued] for a body without values.
func plain[T any](n wire.Number, table func(*T, *wire.Codec), checks ...func(*T) error) row {
	return valued(n, func(_ scope, m *T, c *wire.Codec) { table(m, c) }, func(_ scope, m *T) error {
		for _, check := range checks {
			if err := check(m); err != nil {
				return err
			}
		}
		return nil
	})
}

// byHand returns the row of a body whose fields are appended and read without a table.
func byHand[T any](n wire.Number, appendTo func(*encoder, T), set func(*decoder, *T, *wire.Field) error) row {
	return row{
		number: n,
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
			for d.in = b; len(d.in) > 0; {
				f, rest, err := wire.Next(d.in)
				if err == nil {
					err = set(d, &m, &f)
				}
				if err != nil {
					return nil, err
				}
				d.in = rest
			}
			return m, nil
		},
	}
}

// rows are the bodies. The numbers are part of the wire: a number is never used again. The
// frequent ones come first, because the rows are tried in their order.
var rows = []row{ //nolint:gochecknoglobals // A constant table.
	byHand(21, appendDeltas, setDeltas),
	plain(22, deltasTaken),
	valued(23, scope.put),
	plain(24, putTaken),
	plain(25, ask, checkAsk),
	valued(26, scope.answer),
	plain(27, compare),
	plain(28, groups),
	plain(29, askBuckets),
	plain(30, bucketHashes),
	plain(31, pull),
	valued(32, scope.pullReply, scope.checkPullReply),
	plain(33, sweep),
	plain(34, sweepReply),
	plain(35, entryRequest, checkEntryRequest),
	valued(36, scope.entryReply),
	valued(37, scope.commit, scope.readDelta),
	plain(38, removeKey, checkRemoveKey),
	plain(39, committed),
	plain(16, hello),
	plain(17, prepare),
	plain(18, promise),
	plain(19, accept, checkAccept),
	plain(20, accepted),
	plain(40, olderStore),
}

// appendBody appends the body of an envelope, and reports whether it is in the list.
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
