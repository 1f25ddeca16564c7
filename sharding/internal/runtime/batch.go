// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"
	"slices"
	"sync"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/transport"
)

// The messages that several cells have collected go in one envelope, when their lane calls:
//
//	transmit   takes slots out of the line of the peer
//	encode     for each, with mu held: its messages become a part of the batch
//	Track      the batch is appended to the lane, with no mu held
//	settle     for each, with mu held: its messages are at their place, or wait again
//
// Meanwhile a slot counts as collecting, so that nothing overtakes the batch. What does not
// fit takes the way of a cell alone, behind the batch, and the next slots begin another.

// batch is an envelope that is being filled.
type batch struct {
	turn sync.Mutex // Held while the batch is filled and sent: two sessions may call for a moment.

	slots []*Slot
	parts []slotBatch
	bytes []byte
	full  bool // The last slot has more than the batch had room for.

	numbers wire.Numbering // The numbers of streams of the present session.

	now  machine.Instant
	copy func(dst []byte) []byte // Appends the batch to a buffer; made at first use.
}

// slotBatch is what a batch has of a slot. It may be empty.
type slotBatch struct {
	slot     *Slot
	handover cell.PendingAppend
}

// transmit has the next slots in line transmit. The lane calls it.
func (p *peer) transmit() {
	b := &p.batch
	b.turn.Lock()
	defer b.turn.Unlock()
	b.slots = p.next(b.slots)
	b.now = p.of.Ports.Clock.Instant()
	if len(b.slots) > 1 && p.version.Load() >= protocol.VersionFrames {
		p.send(b)
	} else {
		for _, sl := range b.slots {
			sl.drain(p, b.now)
		}
	}
	clear(b.slots)
}

// send appends what the slots have collected to the lane, in batches: the first that does not
// take all that a slot has ends there.
func (p *peer) send(b *batch) {
	there := p.of.clocks.at(p.node, b.now)
	for i, sl := range b.slots {
		if len(b.parts) == 0 {
			p.number(b)
			b.bytes, b.full = wire.BeginBatch(b.bytes[:0], there, b.numbers.Generation), false
		}
		if h, ok := sl.encode(p); ok {
			b.parts = append(b.parts, slotBatch{sl, h})
		}
		if len(b.parts) > 0 && (b.full || i == len(b.slots)-1) {
			p.append(b)
		}
	}
}

// number has the streams of the batch named by numbers, if the other node knows of such. Numbers
// are given anew in each session, which the other node may not have been in before; a session that
// has ended gives none.
func (p *peer) number(b *batch) {
	switch {
	case p.version.Load() < protocol.VersionNumbers || p.over.Load():
		b.numbers = wire.Numbering{}
	case b.numbers.Generation == 0 || b.numbers.Exhausted():
		b.numbers = wire.Numbering{Generation: p.of.generations.Add(1)}
	}
}

// append appends the batch to the lane, and empties it.
func (p *peer) append(b *batch) {
	var at appendResult
	var err error
	if slices.ContainsFunc(b.parts, func(q slotBatch) bool { return !q.handover.Empty() }) {
		if b.copy == nil {
			b.copy = func(dst []byte) []byte { return append(dst, b.bytes...) }
		}
		at.passage, at.place, err = p.lane.Track(protocol.MessageService, b.copy)
	}
	for i := range b.parts {
		b.parts[i].slot.settle(p, &b.parts[i].handover, at, err)
	}
	clear(b.parts)
	b.parts = b.parts[:0]
	if errors.Is(err, transport.ErrFull) {
		p.of.Ports.AwaitRoom(p.node)
	}
}

// take copies messages of a cell, from a number on, into the batch, and returns the number of the
// first message that it left out.
func (b *batch) take(encoder *wire.Encoder, o cell.Transmission, first uint64) (unsent uint64) {
	b.bytes, unsent = encoder.Part(b.bytes, &o, first, maxEnvelope, b.now, &b.numbers)
	b.full = unsent != o.Window.Next()
	return unsent
}
