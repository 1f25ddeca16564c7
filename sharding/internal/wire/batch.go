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
// that the clock of the receiver can show now; 0 when that is not known. The numbers of streams
// are of a generation, which is 0 without numbers.
func BeginBatch(dst []byte, there machine.Instant, generation uint64) []byte {
	dst = wire.AppendUint(dst, 1, typeBatch)
	dst = wire.AppendUint(dst, numberGeneration, generation)
	return wire.AppendUint(dst, 8, uint64(there))
}

// Part appends the messages of o from number first on, which o has, as many as fit, but at most n,
// as a part of a batch that began at the start of dst. It returns the number of the first message
// that it left out: first itself, and nothing is appended, when the batch has no room for that. The
// number of the stream is given by the numbering whose generation the batch has.
func (e *Encoder) Part(dst []byte, o *cell.Transmission, first uint64, n int, now machine.Instant, by *Numbering) ([]byte, uint64) {
	e.remember(stream{o.Kind, o.Shard, o.Origin, o.Base, o.Route})
	before := len(dst)
	dst, at := wire.Begin(dst, numberParts)
	dst, number := e.name(dst, first, by)
	dst = wire.AppendUint(dst, 7, first)
	all := o.Window.From(first)
	dst, unsent := appendItems(dst, &all, n, BatchBytes-len(dst), now)
	if unsent == first {
		return dst[:before], first
	}
	e.appended(number, unsent, by)
	return wire.End(dst, at), unsent
}

// Batch is an envelope with messages of several streams. It refers to the bytes that it was
// decoded from, and to its decoder.
type Batch struct {
	d          *Decoder
	clock      uint64
	generation uint64
	parts      []byte
}

// openBatch returns a batch whose parts begin at b.
func (d *Decoder) openBatch(b []byte) *Batch {
	d.batch = Batch{d: d, clock: d.e.clock, generation: d.e.seq, parts: b}
	return &d.batch
}

// Parts calls f with each part in order, as a run that is valid until f returns. An error of a
// part, or of f, ends the batch. The numbers of streams are looked up in those that are known of
// the sender, and added to them. A part whose number is not known there is refused; Parts returns
// how many messages were.
func (b *Batch) Parts(known *Numbers, f func(*Run) error) (refused int, err error) {
	known.begin(b.generation)
	for rest := b.parts; len(rest) > 0; {
		var field wire.Field
		if field, rest, err = wire.Next(rest); err != nil {
			return refused, err
		}
		if field.Number != numberParts {
			continue // The field is one of a later version.
		}
		run, err := b.d.part(b, &field, known)
		switch {
		case err != nil:
		case run.e.of == nil:
			refused += run.count()
		default:
			err = f(run)
		}
		if err != nil {
			return refused, err
		}
	}
	return refused, nil
}

// part returns a part of a batch as a run, without a stream if its number is not known.
func (d *Decoder) part(of *Batch, f *wire.Field, known *Numbers) (*Run, error) {
	h := runHeader{clock: of.clock}
	var number uint32
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
		case numberOfStream:
			err = wire.Set(&number, &in, MaxNumbers)
		case 7:
			err = wire.Set(&h.seq, &in, math.MaxUint64)
		case numberItems:
			return d.named(h, of.generation, number, b, known)
		}
		b = rest
	}
	if err == nil {
		err = wire.Malformed("a part of a batch without messages")
	}
	return nil, err
}

// named returns a part whose items begin at b, with the stream that it spells out or has the
// number of.
func (d *Decoder) named(h runHeader, generation uint64, number uint32, b []byte, known *Numbers) (*Run, error) {
	switch {
	case h.seq == 0:
		return nil, wire.Malformed("a part of a batch without a place in its stream")
	case number != 0 && generation == 0:
		return nil, wire.Malformed("a number of a stream without a generation")
	case h.of == nil && number == 0:
		return nil, wire.Malformed("a part of a batch without a stream")
	case h.of == nil:
		if h.of = known.lookup(generation, number); h.of == nil {
			d.run = Run{d: d, e: h, items: b}
			return &d.run, nil
		}
		return d.openRun(h, b)
	}
	run, err := d.openRun(h, b)
	if err == nil {
		err = known.define(generation, number, h.of)
	}
	return run, err
}

// count returns how many messages the run has, as far as it can be read.
func (r *Run) count() (n int) {
	for b := r.items; len(b) > 0; {
		item, rest, err := wire.Next(b)
		if err != nil {
			break
		}
		if b = rest; item.Number == numberItems {
			n++
		}
	}
	return n
}
