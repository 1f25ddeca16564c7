// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"encoding/binary"
	"slices"

	"github.com/quorate/quorate/machine"
)

// The sizes of chunks. The first chunk of a window is a small one, since most windows of a node
// with many shards have few messages at a time. A message that is larger than a large chunk has
// a chunk to itself.
const (
	Small = 864
	Large = 7360

	smallItems = 12
	largeItems = 96
)

// Chunk is memory for messages with consecutive numbers.
type Chunk struct {
	next  *Chunk
	at    uint64 // The number of the message of the first entry.
	items []entry
	bytes []byte
}

// entry says where a message is in its chunk: the message begins where the one before ends.
type entry struct {
	end   uint32
	head  uint16 // The size of the entity's field.
	timed bool   // The message has a deadline.
	asked bool   // The message has a correlation.
}

// NewChunk returns an empty chunk for n bytes, which is [Small], [Large] or more.
func NewChunk(n int) *Chunk {
	switch n {
	case Small:
		c := new(struct {
			Chunk
			items [smallItems]entry
			bytes [Small]byte
		})
		c.Chunk.bytes, c.Chunk.items = c.bytes[:0], c.items[:0]
		return &c.Chunk
	case Large:
		c := new(struct {
			Chunk
			items [largeItems]entry
			bytes [Large]byte
		})
		c.Chunk.bytes, c.Chunk.items = c.bytes[:0], c.items[:0]
		return &c.Chunk
	default:
		return &Chunk{bytes: make([]byte, 0, n), items: make([]entry, 0, 1)}
	}
}

// Size returns for how many bytes the chunk was made.
func (c *Chunk) Size() int { return cap(c.bytes) }

// Reset empties a chunk that no window has.
func (c *Chunk) Reset() { c.next, c.at, c.items, c.bytes = nil, 0, c.items[:0], c.bytes[:0] }

// takes reports whether there is room for one more message of n bytes.
func (c *Chunk) takes(n int) bool {
	return len(c.items) < cap(c.items) && cap(c.bytes)-len(c.bytes) >= n
}

// end returns the number behind the last message.
func (c *Chunk) end() uint64 { return c.at + uint64(len(c.items)) }

// push appends a message.
func (c *Chunk) push(m *Item) {
	var head int
	c.bytes, head = m.append(c.bytes)
	c.items = append(c.items, entry{uint32(len(c.bytes)), uint16(head), m.Deadline != 0, m.Correlation != 0}) // An entity has an id of a few hundred bytes.
}

// copy appends a message of another chunk.
func (c *Chunk) copy(v *View) {
	if v.Deadline != 0 {
		c.bytes = binary.LittleEndian.AppendUint64(c.bytes, uint64(v.Deadline))
	}
	c.bytes = append(append(c.bytes, v.Head...), v.Body...)
	c.items = append(c.items, entry{uint32(len(c.bytes)), uint16(len(v.Head)), v.Deadline != 0, v.asked})
}

// start returns where the i-th message begins.
func (c *Chunk) start(i int) uint32 {
	if i == 0 {
		return 0
	}
	return c.items[i-1].end
}

// view sets v to the i-th message.
func (c *Chunk) view(i int, v *View) {
	e := c.items[i]
	b := c.bytes[c.start(i):e.end]
	v.Seq, v.Deadline, v.asked = c.at+uint64(i), 0, e.asked
	if e.timed {
		v.Deadline = machine.Instant(binary.LittleEndian.Uint64(b))
		b = b[deadlineBytes:]
	}
	v.Head, v.Body = b[:e.head:e.head], b[e.head:]
}

// remove takes the i-th message out; those behind it move up.
func (c *Chunk) remove(i int) {
	from, to := c.start(i), c.items[i].end
	c.bytes = slices.Delete(c.bytes, int(from), int(to))
	c.items = slices.Delete(c.items, i, i+1)
	for ; i < len(c.items); i++ {
		c.items[i].end -= to - from
	}
}
