// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"sync"
	"sync/atomic"
)

const (
	// minBuffer is the capacity of a new buffer. It is just above the size up to which gRPC
	// does not count references, 1 KiB, and one that the allocator has.
	minBuffer = 1<<10 + 1<<7

	// maxPooled is the largest buffer that goes back to the pool: one batch
	// with room to spare. Larger ones are rare and left to the collector.
	maxPooled = 128 << 10
)

// Pool keeps buffers for reuse. The zero value is ready for use, from any
// goroutine.
type Pool struct{ buffers sync.Pool }

// Get returns an empty buffer with one reference.
func (p *Pool) Get() *Buffer {
	b, ok := p.buffers.Get().(*Buffer)
	if !ok {
		b = &Buffer{B: make([]byte, 0, minBuffer), pool: p}
	}
	b.refs.Store(1)
	return b
}

// Buffer is a slice with a count of references. A frame has one reference in
// the session, until it is acknowledged, and one a connection on which it is
// being written; it is only reused when both are gone, so that a dying
// connection never sends the bytes of another frame.
type Buffer struct {
	B    []byte
	refs atomic.Int32
	pool *Pool
}

// Retain adds a reference.
func (b *Buffer) Retain() { b.refs.Add(1) }

// Free drops a reference. The last Free returns the buffer to its pool.
func (b *Buffer) Free() {
	if b.refs.Add(-1) != 0 {
		return
	}
	if cap(b.B) > maxPooled {
		b.B = nil
		return
	}
	b.B = b.B[:0]
	b.pool.buffers.Put(b)
}
