// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/cell"
)

// Messages of several streams in one envelope: BeginBatch and Encoder.Part write it, Batch reads
// it, part by part, each of which is a run.

// numberParts is the field of the parts of a batch.
const numberParts = 21

// BatchBytes bounds the parts of a batch. Every frame has room for as many.
const BatchBytes = 32 << 10

// BeginBatch appends the beginning of an envelope to which parts are appended. There is the least
// that the clock of the receiver can show now; 0 when that is not known.
func BeginBatch(dst []byte, there machine.Instant) []byte {
	return wire.AppendUint(wire.AppendUint(dst, 1, typeBatch), 8, uint64(there))
}

// Part appends the messages of o from number first on, which o has, as many as fit, but at most n,
// as a part of a batch that began at the start of dst. It returns the number of the first message
// that it left out: first itself, and nothing is appended, when the batch has no room for that.
func (e *Encoder) Part(dst []byte, o *cell.Outgoing, first uint64, n int, now machine.Instant) ([]byte, uint64) {
	e.remember(stream{o.Kind, o.Shard, o.Origin, o.Base, o.Route})
	before := len(dst)
	dst, at := wire.Begin(dst, numberParts)
	dst = append(dst, e.stream...)
	dst = wire.AppendUint(dst, 7, first)
	all := o.Window.From(first)
	dst, unsent := appendItems(dst, &all, n, BatchBytes-len(dst), now)
	if unsent == first {
		return dst[:before], first
	}
	return wire.End(dst, at), unsent
}

// Batch is an envelope with messages of several streams. It refers to the bytes that it was
// decoded from, and to its decoder.
type Batch struct {
	d     *Decoder
	clock uint64
	parts []byte
}

// openBatch returns a batch whose parts begin at b.
func (d *Decoder) openBatch(b []byte) *Batch {
	d.batch = Batch{d: d, clock: d.e.clock, parts: b}
	return &d.batch
}

// Parts calls f with each part in order, as a run that is valid until f returns. An error of a
// part, or of f, ends the batch.
func (b *Batch) Parts(f func(*Run) error) error {
	for rest := b.parts; len(rest) > 0; {
		var field wire.Field
		var err error
		if field, rest, err = wire.Next(rest); err != nil {
			return err
		}
		if field.Number != numberParts {
			continue // The field is one of a later version.
		}
		run, err := b.d.part(b, &field)
		if err != nil {
			return err
		}
		if err := f(run); err != nil {
			return err
		}
	}
	return nil
}

// part returns a part of a batch as a run.
func (d *Decoder) part(of *Batch, f *wire.Field) (*Run, error) {
	h := heading{of: &d.none, clock: of.clock}
	b, err := f.Data(math.MaxInt)
	for len(b) > 0 && err == nil {
		var in wire.Field
		var rest []byte
		if in, rest, err = wire.Next(b); err != nil {
			return nil, err
		}
		switch in.Number {
		case 5:
			h.of, err = d.stream(&in)
		case 7:
			err = wire.Set(&h.seq, &in, math.MaxUint64)
		case numberItems:
			return d.openRun(h, b)
		}
		b = rest
	}
	if err == nil {
		err = wire.Malformed("a part of a batch without messages")
	}
	return nil, err
}
