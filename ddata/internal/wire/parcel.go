// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"iter"
	"slices"
	"sync/atomic"

	"github.com/quorate/quorate/machine/wire"
)

// A message that is larger than the transport takes travels as a parcel: it is cut into parts
// (Cut), which the receiver joins (Joiner). The transport delivers what a sender sends in
// order, but parts may be missing where a session broke, and the parcels of several
// goroutines may be mixed. A parcel with a fault is dropped: whoever waits for the message
// asks again.

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

// LimitMin is the least limit that [Cut] keeps to.
const LimitMin = 2 * partOverhead

// Cut returns the frames in which a message travels: itself if it has at most limit bytes, otherwise parts of at most
// limit bytes. The id tells the parcels of one sender to one receiver apart, and must not come again as long as parts
// of the parcel can be on their way. The frames are the caller's, except for the message itself.
func Cut(id uint64, message []byte, limit int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(message) <= limit {
			yield(message)
			return
		}
		room := max(limit, LimitMin) - partOverhead
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

// part is one part of a parcel.
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
			if other(before, partBytes) != nil {
				return p, false
			}
		}
	}
	return p, p.index < p.count && len(p.bytes) > 0
}

// Drop says why a parcel was dropped.
type Drop uint8

// The reasons.
const (
	// DropMalformed: a frame began as a part and was none.
	DropMalformed Drop = iota
	// DropLost: a part is missing.
	DropLost
	// DropDoubled: a part came again, or too late.
	DropDoubled
	// DropChanged: the parts say that there are different numbers of them.
	DropChanged
	// DropLarge: the parcel has more bytes than a joiner takes.
	DropLarge
	// DropCrowded: too many parcels were open, or too large ones together, and this one was
	// the oldest.
	DropCrowded
	// DropBroken: the session ended before the parcel did.
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

// Drops counts the parcels that joiners have dropped. It may be shared by many, and used by
// several goroutines at once. The zero value is ready for use.
type Drops struct{ counts [drops]atomic.Uint64 }

// Of returns how many parcels were dropped for a reason.
func (d *Drops) Of(why Drop) uint64 { return d.counts[why].Load() }

// Total returns how many parcels were dropped.
func (d *Drops) Total() uint64 {
	total := uint64(0)
	for i := range d.counts {
		total += d.counts[i].Load()
	}
	return total
}

// openMax is how many parcels of one sender are joined at a time.
const openMax = 4

// Joiner joins the parcels of one sender. Its memory grows with the bytes that have come, not
// with what they announce. It is for one goroutine at a time.
type Joiner struct {
	limit int
	drops *Drops
	open  []*parcel // The oldest first.
	size  int       // The bytes of all open parcels.

	// passed are parcels that were dropped last, whose further parts are passed over, so that
	// a parcel counts once.
	passed [openMax]uint64
	turn   int // Where the next one goes in passed.
	full   int // How many are in passed.
}

// parcel is what has come of a parcel.
type parcel struct {
	id          uint64
	next, count uint64
	bytes       []byte
}

// NewJoiner returns a joiner that holds at most so many bytes of parcels, and counts those
// that it drops.
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
	at := slices.IndexFunc(j.open, func(o *parcel) bool { return o.id == p.id })
	if p.index == 0 {
		// A parcel that begins again is whole again.
		if at >= 0 {
			j.drop(at, DropDoubled)
		}
		at = j.begin(p)
	}
	if at < 0 {
		j.stray(p.id)
		return nil
	}
	return j.add(at, p)
}

// begin opens a parcel and returns its place.
func (j *Joiner) begin(p part) int {
	if len(j.open) == openMax {
		j.drop(0, DropCrowded)
	}
	j.open = append(j.open, &parcel{id: p.id, count: p.count})
	return len(j.open) - 1
}

// add adds a part to an open parcel, and returns the message if it is complete.
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

// stray counts a parcel of which the beginning has not come.
func (j *Joiner) stray(id uint64) {
	if !slices.Contains(j.passed[:j.full], id) {
		j.drops.counts[DropLost].Add(1)
		j.pass(id)
	}
}

// drop drops an open parcel.
func (j *Joiner) drop(at int, why Drop) {
	j.drops.counts[why].Add(1)
	j.pass(j.open[at].id)
	j.close(at)
}

func (j *Joiner) pass(id uint64) {
	j.passed[j.turn] = id
	j.turn = (j.turn + 1) % len(j.passed)
	j.full = min(j.full+1, len(j.passed))
}

func (j *Joiner) close(at int) {
	j.size -= len(j.open[at].bytes)
	j.open = slices.Delete(j.open, at, at+1)
}

// Break drops all open parcels: the session of the sender has ended, and what it sends next
// comes by another.
func (j *Joiner) Break() {
	for len(j.open) > 0 {
		j.drop(0, DropBroken)
	}
	j.turn, j.full = 0, 0
}

// Size returns how many bytes of open parcels the joiner holds.
func (j *Joiner) Size() int { return j.size }
