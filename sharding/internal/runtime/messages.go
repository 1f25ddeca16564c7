// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"sync"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/window"
)

// maxPayloadKept is the largest payload whose memory is kept for the next message.
const maxPayloadKept = 4 << 10

// messagePool keeps the memory of finished messages for new ones: every message takes one
// on each of its nodes, and the garbage collector would have little else to do. Messages
// that were encoded, in full, are kept apart from those that never were, in bare, since
// they have memory for a payload.
type messagePool struct{ bare, full sync.Pool }

// plain returns an empty message that will probably not be encoded.
func (p *messagePool) plain() *cell.Message {
	if m, ok := p.bare.Get().(*cell.Message); ok {
		return m
	}
	return new(cell.Message)
}

// packed returns an empty message with an empty payload that holds n bytes
// without growing.
func (p *messagePool) packed(n int) *cell.Message {
	m, ok := p.full.Get().(*cell.Message)
	switch {
	case !ok:
		return cell.NewMessage(n)
	case cap(m.Payload) < n:
		m.Payload = make([]byte, 0, n)
	}
	return m
}

// freeAll puts the messages of a list, which nothing refers to any more, into the pool.
func (p *messagePool) freeAll(list *cell.Message) {
	for m := list; m != nil; {
		next := m.Next()
		p.free(m)
		m = next
	}
}

// free puts a message, which nothing refers to any more, into the pool.
func (p *messagePool) free(m *cell.Message) {
	machine.Assert(m.Kind != "", "a message is freed once", "message", m)
	if c := cap(m.Payload); c == 0 || c > maxPayloadKept {
		m.Payload = nil // One that is not nil says that the message is encoded, also into no bytes.
	}
	m.Reset()
	if cap(m.Payload) > 0 {
		p.full.Put(m)
	} else {
		p.bare.Put(m)
	}
}

// chunkPool keeps the memory of windows that have become empty for others, by the size of the
// chunks, until the collector wants it.
type chunkPool struct{ small, large sync.Pool }

// take returns an empty chunk for n bytes.
func (p *chunkPool) take(n int) *window.Chunk {
	var c any
	switch n {
	case window.Small:
		c = p.small.Get()
	case window.Large:
		c = p.large.Get()
	}
	if c == nil {
		return window.NewChunk(n)
	}
	return c.(*window.Chunk)
}

// put takes chunks that no window uses any more.
func (p *chunkPool) put(spent []*window.Chunk) {
	for _, c := range spent {
		c.Reset()
		switch c.Size() {
		case window.Small:
			p.small.Put(c)
		case window.Large:
			p.large.Put(c)
		}
	}
}
