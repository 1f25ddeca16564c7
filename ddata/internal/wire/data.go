// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine/wire"
)

// The tables of the messages with changes and entries, and of the answers to them. The first two fields of messages
// with values are names, see names.go. Changes are the most frequent of all, and are encoded by hand.

// MaxReason is the greatest length of the text of a refusal in bytes. Longer ones are cut.
const MaxReason = 512

// The fields of deltas.
const (
	deltasSeq    = 3
	deltasStamp  = 4
	deltasChange = 5
)

func appendDeltas(e *encoder, m protocol.Deltas) {
	e.uint(deltasSeq, m.Seq)
	e.uint(deltasStamp, m.Stamp)
	for i := range m.Changes {
		e.change(deltasChange, &m.Changes[i])
	}
}

func setDeltas(d *decoder, m *protocol.Deltas, f *wire.Field) error {
	switch f.Number {
	case deltasSeq:
		return wire.Set(&m.Seq, f, math.MaxUint64)
	case deltasStamp:
		return wire.Set(&m.Stamp, f, math.MaxUint64)
	case deltasChange:
		b, err := inner(f)
		if err != nil {
			return err
		}
		x, err := d.change(b)
		m.Changes = append(withRoom(d, m.Changes, f), x)
		return err
	}
	return d.name(f)
}

func deltasTaken(m *protocol.DeltasTaken, c *wire.Codec) {
	wire.Uint(c, 1, &m.Seq, math.MaxUint64)
	wire.Bool(c, 2, &m.Stale)
	keys(c, 3, &m.Gaps)
	wire.Messages(c, 4, &m.Refusals, math.MaxInt, refusal, checkRefusal)
	keys(c, 5, &m.Deleted)
}

// key is a row with a key, which is not empty.
func key(c *wire.Codec, n wire.Number, k *string) {
	wire.Row(c, n, func(b []byte) []byte { return wire.AppendString(b, n, *k) }, func(f *wire.Field) (err error) {
		*k, err = setKey(f)
		return err
	})
}

// keys is a row with a list of keys.
func keys(c *wire.Codec, n wire.Number, all *[]string) {
	wire.Row(c, n, func(b []byte) []byte {
		for _, k := range *all {
			b = wire.AppendString(b, n, k)
		}
		return b
	}, func(f *wire.Field) error {
		k, err := setKey(f)
		if *all == nil {
			*all = make([]string, 0, c.Count(n))
		}
		*all = append(*all, k)
		return err
	})
}

func setKey(f *wire.Field) (string, error) {
	b, err := inner(f)
	if err != nil {
		return "", err
	}
	return keyOf(b)
}

func refusal(m *protocol.Refusal, c *wire.Codec) {
	key(c, 1, &m.Key)
	wire.Clipped(c, 2, &m.Reason, MaxReason)
}

func checkRefusal(m *protocol.Refusal) error {
	if m.Key == "" {
		return wire.Malformed("a refusal of no key")
	}
	return nil
}

func (x scope) put(m *protocol.Put, c *wire.Codec) {
	x.names(c)
	wire.Uint(c, 3, &m.Op, math.MaxUint64)
	wire.Uint(c, 4, &m.Stamp, math.MaxUint64)
	x.entries(c, 5, &m.Entries)
}

func putTaken(m *protocol.PutTaken, c *wire.Codec) {
	wire.Uint(c, 1, &m.Op, math.MaxUint64)
	wire.Bool(c, 2, &m.Stale)
	wire.Messages(c, 4, &m.Refusals, math.MaxInt, refusal, checkRefusal)
	keys(c, 5, &m.Deleted)
}

func ask(m *protocol.Ask, c *wire.Codec) {
	wire.Uint(c, 1, &m.Op, math.MaxUint64)
	key(c, 2, &m.Key)
	wire.Fixed(c, 3, &m.Hash)
}

func checkAsk(m *protocol.Ask) error { return requireKey(m.Key) }

func (x scope) answer(m *protocol.Answer, c *wire.Codec) {
	x.names(c)
	wire.Uint(c, 3, &m.Op, math.MaxUint64)
	wire.Bool(c, 4, &m.Same)
	x.entry(c, 5, &m.Entry)
	wire.Bool(c, 6, &m.Away)
	wire.Fixed(c, 7, &m.Hash)
}
