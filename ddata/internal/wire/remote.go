// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"time"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine/wire"
)

// The tables of the messages by which a node changes keys that it does not hold.

func entryRequest(m *protocol.EntryRequest, c *wire.Codec) {
	wire.Uint(c, 1, &m.Op, math.MaxUint64)
	key(c, 2, &m.Key)
}

func checkEntryRequest(m *protocol.EntryRequest) error { return requireKey(m.Key) }

// requireKey refuses a message without its key.
func requireKey(key string) error {
	if key == "" {
		return wire.Malformed("a message without its key")
	}
	return nil
}

func (x scope) entryReply(m *protocol.EntryReply, c *wire.Codec) {
	x.names(c)
	wire.Uint(c, 3, &m.Op, math.MaxUint64)
	wire.Bool(c, 4, &m.Away)
	x.entry(c, 5, &m.Entry)
	wire.Fixed(c, 6, &m.At)
	wire.Fixed(c, 7, &m.Base)
	wire.Uint(c, 8, &m.Stamp, math.MaxUint64)
}

func (x scope) commit(m *protocol.Commit, c *wire.Codec) {
	x.name(c, m.Type)
	wire.Uint(c, 3, &m.Op, math.MaxUint64)
	key(c, 4, &m.Key)
	level(c, 5, &m.Level)
	limit(c, 6, &m.Limit)
	wire.Fixed(c, 7, &m.Base)
	x.delta(c, 8, m)
	wire.Bool(c, 9, &m.Whole)
	wire.Uint(c, 10, &m.Stamp, math.MaxUint64)
	wire.Bool(c, 11, &m.Again)
}

// delta is a row with a delta. Reading it only keeps the bytes, for [scope.readDelta]: the type may come after them.
func (x scope) delta(c *wire.Codec, n wire.Number, m *protocol.Commit) {
	wire.Row(c, n, func(b []byte) []byte {
		if m.Delta == nil {
			return b
		}
		return x.e.value(b, n, m.Type, m.Delta)
	}, func(f *wire.Field) (err error) {
		x.d.delta, err = inner(f)
		return err
	})
}

// readDelta checks a commit that was read, and decodes its delta, whose type is known now.
func (x scope) readDelta(m *protocol.Commit) (err error) {
	if err := requireKey(m.Key); err != nil {
		return err
	}
	if x.d.delta == nil {
		m.Type, m.Delta, err = x.d.typed(0)
	} else {
		m.Type, m.Delta, err = x.d.value(0, x.d.delta)
	}
	return err
}

func removeKey(m *protocol.RemoveKey, c *wire.Codec) {
	wire.Uint(c, 3, &m.Op, math.MaxUint64)
	key(c, 4, &m.Key)
	level(c, 5, &m.Level)
	limit(c, 6, &m.Limit)
	wire.Uint(c, 10, &m.Stamp, math.MaxUint64)
}

func checkRemoveKey(m *protocol.RemoveKey) error { return requireKey(m.Key) }

// level is a row with a level. One with negative numbers is refused: no machine makes it.
func level(c *wire.Codec, n wire.Number, m *protocol.Level) {
	if !c.Reading() && (min(m.N, m.Extra, m.MinCap) < 0 || max(m.N, m.Extra, m.MinCap) > math.MaxInt32) {
		c.Fail(foreign("a level of %+v", *m))
	}
	wire.Message(c, n, m, func(m *protocol.Level, c *wire.Codec) {
		wire.Uint(c, 1, &m.Name, uint64(protocol.All))
		wire.Int(c, 2, &m.N, math.MaxInt32)
		wire.Int(c, 3, &m.Extra, math.MaxInt32)
		wire.Int(c, 4, &m.MinCap, math.MaxInt32)
	})
}

// limit is a row with a duration, which is left out unless it is positive.
func limit(c *wire.Codec, n wire.Number, d *time.Duration) {
	left := max(*d, 0)
	if wire.Int(c, n, &left, math.MaxInt64) {
		*d = left
	}
}

func committed(m *protocol.Committed, c *wire.Codec) {
	wire.Uint(c, 1, &m.Op, math.MaxUint64)
	wire.Uint(c, 2, &m.Verdict, math.MaxUint8)
	wire.Nodes(c, 3, &m.Answered, math.MaxInt)
	wire.Fixeds(c, 4, &m.Missing, math.MaxInt)
	wire.Messages(c, 5, &m.Refusals, math.MaxInt, nodeRefusal, checkNodeRefusal)
	wire.Clipped(c, 6, &m.Reason, MaxReason)
}

func nodeRefusal(m *protocol.NodeRefusal, c *wire.Codec) {
	wire.Node(c, 1, &m.Node)
	wire.Clipped(c, 2, &m.Reason, MaxReason)
}

func checkNodeRefusal(m *protocol.NodeRefusal) error {
	if m.Node.IsZero() {
		return wire.Malformed("a refusal by no node")
	}
	return nil
}
