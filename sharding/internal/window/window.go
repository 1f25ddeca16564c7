// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"github.com/quorate/quorate/machine"
)

// Push and Copy put messages behind all others, From hands them out, Cut takes the first ones
// out, Remove and Strip change one.

// Window holds the messages of a stream with consecutive numbers. Invariants, between calls:
//
//	W1  the chunks hold the messages first to first+n-1, in order, and before them in the
//	    first chunk only messages that were cut;
//	W2  each chunk has a message that was not cut;
//	W3  bytes is the sum of the sizes of the messages, and asked counts those with a
//	    correlation.
//
// The zero value is an empty window whose first message has the number 0; see [New].
type Window struct {
	head, tail *Chunk
	near       *Chunk // The chunk that was handed out from last, or nil: the next time mostly goes on there.
	first      uint64 // The number of the first message, or of the next one if there is none.
	n          int
	bytes      int
	asked      int
}

// New returns an empty window whose first message has a number.
func New(first uint64) Window { return Window{first: first} }

// Len returns the number of messages.
func (w *Window) Len() int { return w.n }

// Bytes returns the size of the messages.
func (w *Window) Bytes() int { return w.bytes }

// First returns the number of the first message, or Next if the window is empty.
func (w *Window) First() uint64 { return w.first }

// Next returns the number of the next message that is put into the window.
func (w *Window) Next() uint64 { return w.first + uint64(w.n) }

// Push puts a message behind all others. It calls fresh for a chunk of [Small], [Large] or
// more bytes, when it needs one.
func (w *Window) Push(m *Item, fresh func(n int) *Chunk) {
	c := w.room(m.most(), fresh)
	before := len(c.bytes)
	c.push(m)
	w.pushed(len(c.bytes)-before, m.Correlation != 0)
}

// Copy puts a message of another window behind all others.
func (w *Window) Copy(v *View, fresh func(n int) *Chunk) {
	c := w.room(deadlineBytes+len(v.Head)+len(v.Body), fresh)
	before := len(c.bytes)
	c.copy(v)
	w.pushed(len(c.bytes)-before, v.asked)
}

// room returns the last chunk, which has room for a message of n bytes.
func (w *Window) room(n int, fresh func(n int) *Chunk) *Chunk {
	if w.tail != nil && w.tail.takes(n) {
		return w.tail
	}
	size := max(n, Large)
	if w.tail == nil && n <= Small {
		size = Small
	}
	c := fresh(size)
	c.at = w.Next()
	if w.tail == nil {
		w.head = c
	} else {
		w.tail.next = c
	}
	w.tail = c
	return c
}

// pushed counts a message.
func (w *Window) pushed(size int, asked bool) {
	w.n++
	w.bytes += size
	if asked {
		w.asked++
	}
}

// Cut takes the messages up to a number out, and returns them.
func (w *Window) Cut(seq uint64) Items {
	if w.n == 0 || seq < w.first {
		return Items{}
	}
	over := Items{chunk: w.head, first: w.first, end: min(seq+1, w.Next())}
	for w.head != nil {
		from, to := int(w.first-w.head.at), len(w.head.items) // A place in a chunk.
		whole := w.head.end() <= over.end
		if !whole {
			to = int(over.end - w.head.at) // A place in a chunk.
		}
		w.leave(w.head, from, to)
		if !whole {
			break
		}
		if w.near == w.head {
			w.near = nil
		}
		w.head = w.head.next
	}
	if w.head == nil {
		w.tail = nil
	}
	return over
}

// leave takes the messages of the first chunk from one place to another out of the sums.
func (w *Window) leave(c *Chunk, from, to int) {
	w.first += uint64(to - from)
	w.n -= to - from
	if to > from {
		w.bytes -= int(c.items[to-1].end - c.start(from))
	}
	for i := from; i < to && w.asked > 0; i++ {
		if c.items[i].asked {
			w.asked--
		}
	}
}

// From returns the messages from a number on, all that the window has. They are valid until the
// window changes.
func (w *Window) From(seq uint64) Items {
	seq = max(seq, w.first)
	if seq >= w.Next() {
		return Items{}
	}
	w.near = w.find(seq)
	return Items{chunk: w.near, first: seq, end: w.Next()}
}

// find returns the chunk of a message.
func (w *Window) find(seq uint64) *Chunk {
	c := w.head
	if w.near != nil && w.near.at <= seq {
		c = w.near
	}
	for c.end() <= seq {
		c = c.next
	}
	return c
}

// Find returns the number of the message with a correlation, from a number on; false if there is
// none.
func (w *Window) Find(correlation, from uint64) (seq uint64, ok bool) {
	if w.asked == 0 || correlation == 0 {
		return 0, false
	}
	all := w.From(from)
	for v := (View{}); all.Next(&v); {
		if v.Correlation() == correlation {
			return v.Seq, true
		}
	}
	return 0, false
}

// Remove takes one message out. Those behind it move up by one number. The chunk is returned if
// nothing else is in it; else nil.
func (w *Window) Remove(seq uint64) (spent *Chunk) {
	machine.Assert(seq >= w.first && seq < w.Next(), "a message that is removed is in the window", "seq", seq)
	c := w.find(seq)
	i := int(seq - c.at) // A place in a chunk.
	w.n--
	w.bytes -= int(c.items[i].end - c.start(i))
	if c.items[i].asked {
		w.asked--
	}
	c.remove(i)
	for behind := c.next; behind != nil; behind = behind.next {
		behind.at--
	}
	if c.end() > max(c.at, w.first) {
		return nil
	}
	w.unlink(c)
	return c
}

// unlink takes a chunk out of the list.
func (w *Window) unlink(c *Chunk) {
	w.near = nil
	if w.head == c {
		w.head = c.next
		if c.next == nil {
			w.tail = nil
		}
		return
	}
	before := w.head
	for before.next != c {
		before = before.next
	}
	before.next = c.next
	if w.tail == c {
		w.tail = before
	}
}

// Strip takes the payload of a message away and sets flags instead. It returns a chunk that is not
// used any more; nil, and nothing is done, if the message has these flags.
func (w *Window) Strip(seq uint64, flags uint32) (spent *Chunk) {
	old := w.find(seq)
	var v View
	old.view(int(seq-old.at), &v) // A place in a chunk.
	if v.Item().Flags == flags {
		return nil
	}
	c := &Chunk{next: old.next, at: old.at, items: make([]entry, 0, len(old.items)), bytes: make([]byte, 0, len(old.bytes)+maxSize)}
	for i := range old.items {
		old.view(i, &v)
		if v.Seq != seq {
			c.copy(&v)
			continue
		}
		m := v.Item()
		m.Payload, m.Flags = nil, flags
		c.push(&m)
	}
	w.bytes += len(c.bytes) - len(old.bytes)
	w.replace(old, c)
	return old
}

// replace puts a chunk in the place of another.
func (w *Window) replace(old, c *Chunk) {
	w.near = nil
	if w.tail == old {
		w.tail = c
	}
	if w.head == old {
		w.head = c
		return
	}
	before := w.head
	for before.next != old {
		before = before.next
	}
	before.next = c
}

// Items is messages with consecutive numbers, one behind the other. The zero value has none.
type Items struct {
	chunk      *Chunk
	first, end uint64
}

// Len returns how many messages Next has not returned yet.
func (i *Items) Len() int { return int(i.end - i.first) }

// Seq returns the number of the next message.
func (i *Items) Seq() uint64 { return i.first }

// Next sets v to the next message; false if there are no more.
func (i *Items) Next(v *View) bool {
	if i.first == i.end {
		return false
	}
	for i.first >= i.chunk.end() {
		i.chunk = i.chunk.next
	}
	i.chunk.view(int(i.first-i.chunk.at), v) // A place in a chunk.
	i.first++
	return true
}

// AppendSpent appends the chunks in which no message is left behind these, which [Window.Cut]
// has returned.
func (i Items) AppendSpent(to []*Chunk) []*Chunk {
	for c := i.chunk; c != nil && c.end() <= i.end; c = c.next {
		to = append(to, c)
	}
	return to
}
