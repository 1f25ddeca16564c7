// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"iter"
	"slices"
	"sync/atomic"

	"github.com/quorate/quorate/machine/wire"
)

// A message that is larger than the transport takes is cut into parts ([Cut]), which the receiver joins ([Joiner]). The
// transport delivers what a sender sends in order, but parts may be missing where a session broke, and the parts of
// messages of several goroutines may alternate. If a part is missing or wrong, the message is dropped: whoever waits
// for it asks again.

// The fields of a part, which is field [envelopePart] of its frame.
const (
	partID    = 1
	partIndex = 2
	partCount = 3
	partBytes = 4
)

// partOverhead is how many bytes a part takes beside those that it carries, at most: the
// tag and length of the frame's field, and the four fields with their numbers.
const partOverhead = 1 + 5 + 11 + 6 + 6 + 6

// MinLimit is the smallest limit that [Cut] observes.
const MinLimit = 2 * partOverhead

// Cut returns the frames in which a message is sent: the message itself if it has at most limit bytes, otherwise its
// parts, of at most limit bytes each. By the id the receiver tells the messages of one sender apart: it must not be
// used again as long as a part with it can be on its way. The frames are the caller's, except for the message itself.
func Cut(id uint64, message []byte, limit int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(message) <= limit {
			yield(message)
			return
		}
		room := max(limit, MinLimit) - partOverhead
		count := (len(message) + room - 1) / room
		index := 0
		for piece := range slices.Chunk(message, room) {
			if !yield(appendPart(make([]byte, 0, len(piece)+partOverhead), part{id, uint64(index), uint64(count), piece})) {
				return
			}
			index++
		}
	}
}

// part is one part of a message.
type part struct {
	id, index, count uint64
	bytes            []byte
}

func appendPart(b []byte, p part) []byte {
	size := wire.SizeUint(partID, p.id) + wire.SizeUint(partIndex, p.index) + wire.SizeUint(partCount, p.count) +
		wire.SizeBytes(partBytes, len(p.bytes))
	b = wire.AppendVarint(wire.AppendTag(b, envelopePart, wire.BytesType), uint64(size))
	b = wire.AppendUint(b, partID, p.id)
	b = wire.AppendUint(b, partIndex, p.index)
	b = wire.AppendUint(b, partCount, p.count)
	return wire.AppendBytes(b, partBytes, p.bytes)
}

// isPart reports whether a frame is a part, by its first byte.
func isPart(frame []byte) bool {
	return len(frame) > 0 && frame[0] == envelopePart*tagStep+byte(asBytes)
}

// decodePart returns the part that a frame is. Its bytes are part of the frame.
func decodePart(frame []byte) (p part, ok bool) {
	f, rest, err := wire.Next(frame)
	if err != nil || len(rest) > 0 {
		return p, false
	}
	for b := f.Bytes; len(b) > 0; {
		var v uint64
		var data []byte
		var t tag
		before := b
		t, v, data, b = next(b)
		switch t {
		case partID*tagStep + asUint:
			p.id = v
		case partIndex*tagStep + asUint:
			p.index = v
		case partCount*tagStep + asUint:
			p.count = v
		case partBytes*tagStep + asBytes:
			p.bytes = data
		default:
			if unknownField(before, partBytes) != nil {
				return p, false
			}
		}
	}
	return p, p.index < p.count && len(p.bytes) > 0
}

// Drop says why a message that came in parts was dropped.
type Drop uint8

// The reasons.
const (
	// DropMalformed: a frame begins as a part, and is none.
	DropMalformed Drop = iota
	// DropLost: a part is missing.
	DropLost
	// DropDoubled: a part came again, or out of order.
	DropDoubled
	// DropChanged: two parts give different numbers of parts.
	DropChanged
	// DropLarge: the message has more bytes than a joiner takes.
	DropLarge
	// DropCrowded: too many messages were incomplete, or too large ones together, and this one was the oldest.
	DropCrowded
	// DropBroken: the session ended before all parts had come.
	DropBroken
	drops
)

// String returns the name of the reason.
func (d Drop) String() string {
	switch d {
	case DropMalformed:
		return "malformed"
	case DropLost:
		return "lost"
	case DropDoubled:
		return "doubled"
	case DropChanged:
		return "changed"
	case DropLarge:
		return "large"
	case DropCrowded:
		return "crowded"
	case DropBroken:
		return "broken"
	case drops:
	}
	return "none"
}

// Drops counts the messages that joiners have dropped. It may be shared by joiners, and used by several goroutines at
// once. The zero value is ready for use.
type Drops struct{ counts [drops]atomic.Uint64 }

// Of returns how many messages were dropped for a reason.
func (d *Drops) Of(why Drop) uint64 { return d.counts[why].Load() }

// Total returns how many messages were dropped.
func (d *Drops) Total() uint64 {
	total := uint64(0)
	for i := range d.counts {
		total += d.counts[i].Load()
	}
	return total
}

// maxOpen is how many messages of one sender are joined at a time.
const maxOpen = 4

// Joiner joins the parts of the messages of one sender. Its memory grows with the bytes that have come, and not with
// the sizes that they announce. It is for one goroutine at a time.
type Joiner struct {
	limit int
	drops *Drops
	open  []*partialMessage // The oldest first.
	size  int               // The bytes of all open messages.

	// dropped are the ids of the messages that were dropped last: their further parts are skipped, so that a message is
	// counted once. It is a ring.
	dropped      [maxOpen]uint64
	nextDropped  int // Where the next id goes in dropped.
	droppedCount int // How many ids are in dropped.
}

// partialMessage is a message of which not all parts have come.
type partialMessage struct {
	id          uint64
	next, count uint64 // The index of the part that has to come next, and the number of parts.
	bytes       []byte
}

// NewJoiner returns a joiner that holds at most maxBytes of incomplete messages, and counts those that it drops.
func NewJoiner(maxBytes int, count *Drops) *Joiner { return &Joiner{limit: maxBytes, drops: count} }

// Add takes in a frame. It returns a message if the frame is one, or completes one; the
// joiner keeps neither of them. Otherwise it returns nil.
func (j *Joiner) Add(frame []byte) []byte {
	if !isPart(frame) {
		return frame
	}
	p, ok := decodePart(frame)
	if !ok {
		j.drops.counts[DropMalformed].Add(1)
		return nil
	}
	at := slices.IndexFunc(j.open, func(o *partialMessage) bool { return o.id == p.id })
	if p.index == 0 {
		// A message that begins again can still become complete.
		if at >= 0 {
			j.drop(at, DropDoubled)
		}
		at = j.begin(p)
	}
	if at < 0 {
		j.dropRest(p.id)
		return nil
	}
	return j.add(at, p)
}

// begin opens a message and returns its index in open.
func (j *Joiner) begin(p part) int {
	if len(j.open) == maxOpen {
		j.drop(0, DropCrowded)
	}
	j.open = append(j.open, &partialMessage{id: p.id, count: p.count})
	return len(j.open) - 1
}

// add adds a part to an open message, and returns the bytes of that if it is complete.
func (j *Joiner) add(at int, p part) []byte {
	o := j.open[at]
	switch {
	case p.count != o.count:
		j.drop(at, DropChanged)
		return nil
	case p.index > o.next:
		j.drop(at, DropLost)
		return nil
	case p.index < o.next:
		j.drop(at, DropDoubled)
		return nil
	case len(o.bytes)+len(p.bytes) > j.limit:
		j.drop(at, DropLarge)
		return nil
	}
	for j.size+len(p.bytes) > j.limit {
		oldest := 0
		if at == 0 {
			oldest = 1
		}
		j.drop(oldest, DropCrowded)
		at = slices.Index(j.open, o)
	}
	o.bytes, o.next, j.size = append(o.bytes, p.bytes...), o.next+1, j.size+len(p.bytes)
	if o.next < o.count {
		return nil
	}
	j.close(at)
	return o.bytes
}

// dropRest counts a message of which the first part has not come, unless it was counted.
func (j *Joiner) dropRest(id uint64) {
	if !slices.Contains(j.dropped[:j.droppedCount], id) {
		j.drops.counts[DropLost].Add(1)
		j.remember(id)
	}
}

// drop drops an open message.
func (j *Joiner) drop(at int, why Drop) {
	j.drops.counts[why].Add(1)
	j.remember(j.open[at].id)
	j.close(at)
}

func (j *Joiner) remember(id uint64) {
	j.dropped[j.nextDropped] = id
	j.nextDropped = (j.nextDropped + 1) % len(j.dropped)
	j.droppedCount = min(j.droppedCount+1, len(j.dropped))
}

func (j *Joiner) close(at int) {
	j.size -= len(j.open[at].bytes)
	j.open = slices.Delete(j.open, at, at+1)
}

// Break drops all open messages: the session of the sender has ended, and what it sends next comes by another one.
func (j *Joiner) Break() {
	for len(j.open) > 0 {
		j.drop(0, DropBroken)
	}
	j.nextDropped, j.droppedCount = 0, 0
}

// Size returns how many bytes of open messages the joiner holds.
func (j *Joiner) Size() int { return j.size }
