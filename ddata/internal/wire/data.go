// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine/wire"
)

// The messages with changes and entries, and those that answer them. The first two fields
// of those with values are the names, see names.go.

// MaxReason is the greatest length of the text of a refusal in bytes. Longer ones are cut.
const MaxReason = 512

// name stores a name, if the field is one.
func (d *decoder) name(f *wire.Field) error {
	switch f.Number {
	case nameType:
		return d.nameTyped(f)
	case nameOrigin:
		return d.nameOrigined(f)
	}
	return nil
}

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
		m.Changes = append(grown(d, m.Changes, f), x)
		return err
	}
	return d.name(f)
}

// The fields of what was taken.
const (
	takenID      = 1 // The number of the deltas, or the operation.
	takenStale   = 2
	takenGap     = 3
	takenRefusal = 4
	takenDeleted = 5
)

func appendDeltasTaken(e *encoder, m protocol.DeltasTaken) {
	e.uint(takenID, m.Seq)
	e.flag(takenStale, m.Stale)
	e.each(takenGap, m.Gaps)
	appendRefusals(e, takenRefusal, m.Refusals)
	e.each(takenDeleted, m.Deleted)
}

func setDeltasTaken(d *decoder, m *protocol.DeltasTaken, f *wire.Field) error {
	switch f.Number {
	case takenID:
		return wire.Set(&m.Seq, f, math.MaxUint64)
	case takenStale:
		return wire.SetBool(&m.Stale, f)
	case takenGap:
		return d.setKeys(&m.Gaps, f)
	case takenRefusal:
		return d.setRefusals(&m.Refusals, f)
	case takenDeleted:
		return d.setKeys(&m.Deleted, f)
	}
	return nil
}

// key returns a key, which is not empty.
func key(f *wire.Field) (string, error) {
	b, err := inner(f)
	if err != nil {
		return "", err
	}
	return keyOf(b)
}

// setKeys adds a key to a list.
func (d *decoder) setKeys(dst *[]string, f *wire.Field) error {
	k, err := key(f)
	*dst = append(grown(d, *dst, f), k)
	return err
}

// The fields of a refusal.
const (
	refusalKey    = 1
	refusalReason = 2
)

// appendRefusals appends a field for each refusal.
func appendRefusals(e *encoder, n wire.Number, all []protocol.Refusal) {
	for _, r := range all {
		e.inside(n, func() {
			e.text(refusalKey, r.Key)
			e.text(refusalReason, wire.Clip(r.Reason, MaxReason))
		})
	}
}

// setRefusals adds a refusal to a list.
func (d *decoder) setRefusals(dst *[]protocol.Refusal, f *wire.Field) error {
	b, err := inner(f)
	if err != nil {
		return err
	}
	var r protocol.Refusal
	err = fields(b, func(f *wire.Field) (err error) {
		switch f.Number {
		case refusalKey:
			r.Key, err = key(f)
		case refusalReason:
			err = wire.SetText(&r.Reason, f, MaxReason)
		}
		return err
	})
	if err == nil && r.Key == "" {
		err = wire.Malformed("a refusal of no key")
	}
	*dst = append(grown(d, *dst, f), r)
	return err
}

// The fields of entries that are put.
const (
	putOp    = 3
	putStamp = 4
	putEntry = 5
)

func appendPut(e *encoder, m protocol.Put) {
	e.uint(putOp, uint64(m.Op))
	e.uint(putStamp, m.Stamp)
	e.entries(putEntry, m.Entries)
}

func setPut(d *decoder, m *protocol.Put, f *wire.Field) error {
	switch f.Number {
	case putOp:
		return wire.Set(&m.Op, f, math.MaxUint64)
	case putStamp:
		return wire.Set(&m.Stamp, f, math.MaxUint64)
	case putEntry:
		return d.setEntries(&m.Entries, f)
	}
	return d.name(f)
}

func appendPutTaken(e *encoder, m protocol.PutTaken) {
	e.uint(takenID, uint64(m.Op))
	e.flag(takenStale, m.Stale)
	appendRefusals(e, takenRefusal, m.Refusals)
	e.each(takenDeleted, m.Deleted)
}

func setPutTaken(d *decoder, m *protocol.PutTaken, f *wire.Field) error {
	switch f.Number {
	case takenID:
		return wire.Set(&m.Op, f, math.MaxUint64)
	case takenStale:
		return wire.SetBool(&m.Stale, f)
	case takenRefusal:
		return d.setRefusals(&m.Refusals, f)
	case takenDeleted:
		return d.setKeys(&m.Deleted, f)
	}
	return nil
}

// The fields of a question for an entry.
const (
	askOp   = 1
	askKey  = 2
	askHash = 3
)

func appendAsk(e *encoder, m protocol.Ask) {
	e.uint(askOp, uint64(m.Op))
	e.text(askKey, m.Key)
	e.fixed(askHash, m.Hash)
}

func setAsk(_ *decoder, m *protocol.Ask, f *wire.Field) (err error) {
	switch f.Number {
	case askOp:
		return wire.Set(&m.Op, f, math.MaxUint64)
	case askKey:
		m.Key, err = key(f)
		return err
	case askHash:
		return wire.SetFixed(&m.Hash, f)
	}
	return nil
}

func checkAsk(_ *decoder, m *protocol.Ask) error { return present(m.Key) }

// The fields of an answer.
const (
	answerOp    = 3
	answerSame  = 4
	answerEntry = 5
	answerAway  = 6
	answerHash  = 7
)

func appendAnswer(e *encoder, m protocol.Answer) {
	e.uint(answerOp, uint64(m.Op))
	e.flag(answerSame, m.Same)
	if m.Entry != nil {
		e.entry(answerEntry, m.Entry)
	}
	e.flag(answerAway, m.Away)
	e.fixed(answerHash, m.Hash)
}

func setAnswer(d *decoder, m *protocol.Answer, f *wire.Field) error {
	switch f.Number {
	case answerOp:
		return wire.Set(&m.Op, f, math.MaxUint64)
	case answerSame:
		return wire.SetBool(&m.Same, f)
	case answerEntry:
		return d.setEntry(&m.Entry, f)
	case answerAway:
		return wire.SetBool(&m.Away, f)
	case answerHash:
		return wire.SetFixed(&m.Hash, f)
	}
	return d.name(f)
}
