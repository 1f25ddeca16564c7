// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import "sync"

// inboxKept is the room, in inputs, that an empty inbox keeps: as many as one batch takes.
const inboxKept = maxBatch

// inbox holds the inputs that wait for a driver, oldest first, up to a bound. Room for them
// is made as they come and given back when they have been taken, since room for thousands is
// hardly ever used.
type inbox struct {
	most int

	// ready has a signal whenever an input waits. Size one.
	ready chan struct{}

	mu    sync.Mutex
	ring  []*entry // From first, count entries wait, around the end.
	first int
	count int
	room  chan struct{} // Closed when an input is taken; nil: nobody waits for room.
}

func newInbox(most int) *inbox { return &inbox{most: most, ready: make(chan struct{}, 1)} }

// offer puts an input into the inbox. If the inbox is full it returns false.
func (b *inbox) offer(e *entry) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.put(e)
}

// put is [inbox.offer] with b.mu held.
func (b *inbox) put(e *entry) bool {
	if b.count == b.most {
		return false
	}
	if b.count == len(b.ring) {
		b.grow()
	}
	b.ring[(b.first+b.count)%len(b.ring)] = e
	b.count++
	b.signal()
	return true
}

// offerOrWait puts an input into the inbox, or returns a channel that is closed when there
// may be room.
func (b *inbox) offerOrWait(e *entry) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.put(e) {
		return nil
	}
	if b.room == nil {
		b.room = make(chan struct{})
	}
	return b.room
}

func (b *inbox) grow() {
	ring := make([]*entry, min(max(inboxKept, 2*len(b.ring)), b.most))
	n := copy(ring, b.ring[b.first:])
	copy(ring[n:], b.ring[:b.first])
	b.ring, b.first = ring, 0
}

// take returns the oldest input, nil if none waits.
func (b *inbox) take() *entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count == 0 {
		return nil
	}
	e := b.ring[b.first]
	b.ring[b.first] = nil
	b.first = (b.first + 1) % len(b.ring)
	b.count--
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
	if b.count == 0 {
		b.empty()
	}
	return e
}

// empty gives room back, and takes the signal away.
func (b *inbox) empty() {
	if len(b.ring) > inboxKept {
		b.ring, b.first = nil, 0
	}
	select {
	case <-b.ready:
	default:
	}
}

// goOn has ready signal again if inputs are left.
func (b *inbox) goOn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count > 0 {
		b.signal()
	}
}

func (b *inbox) signal() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// waiting returns how many inputs wait.
func (b *inbox) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}
