// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"context"
	"fmt"
	"sync"

	"github.com/quorate/quorate/gossip"
)

// The messages that wait for a subscriber: offer takes one or says that there is no room,
// take hands all of them to the subscriber at once, and room waits until that was done.

// Policy says what happens to a message for which there is no room.
type Policy uint8

// The policies. The zero value is [Block].
const (
	// Block has the publisher wait until there is room, as long as its context lasts.
	Block Policy = iota
	// Fail has Publish return an error, as soon as its node knows that there is no room.
	Fail
	// DropNewest drops the message.
	DropNewest
	// DropOldest drops the message that has waited longest, to make room.
	DropOldest

	policies
)

// String returns the name of the policy.
func (p Policy) String() string {
	if p >= policies {
		return fmt.Sprintf("policy %d", uint8(p))
	}
	return [...]string{"block", "fail", "drop-newest", "drop-oldest"}[p]
}

const (
	// overflowBytes bounds what messages of other nodes take, that were on their way when a
	// subscriber that blocks was full.
	overflowBytes = 16 << 20
	// itemBytes is about what a message takes beside its data.
	itemBytes = 96
)

// item is a message that waits for a subscriber.
type item struct {
	from gossip.NodeID
	data []byte
}

// verdict says what has become of a message that was offered.
type verdict uint8

const (
	taken   verdict = iota
	dropped         // This message or an older one was.
	refused         // There is no room for it.
)

// inbox holds the messages that wait for one subscriber.
type inbox struct {
	id     uint64 // Unique among the inboxes of the node, rising.
	group  string
	policy Policy
	max    int           // How many messages may wait.
	wake   chan struct{} // Holds one token when there may be something to take.

	mu       sync.Mutex // Guards what follows; held for bookkeeping only.
	queue    []item
	overflow int           // Bytes of the messages taken beyond max.
	lost     uint64        // Messages that were dropped.
	emptied  chan struct{} // Closed when the queue is taken; nil while nobody waits for that.
	ended    bool
}

// offer puts a message of this node into the queue.
func (b *inbox) offer(it item) verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.put(it, b.max)
}

// offerRemote puts a message of another node into the queue, and returns the pressure that the node
// is to know. If publishers wait when the queue is full, messages that are on their way then are
// taken beyond the limit, up to overflowBytes.
func (b *inbox) offerRemote(it item) (verdict, state) {
	b.mu.Lock()
	defer b.mu.Unlock()
	most := b.max
	if b.policy == Block && len(b.queue) >= most {
		size := len(it.data) + itemBytes
		if b.overflow+size <= overflowBytes {
			b.overflow += size
			most = len(b.queue) + 1
		}
	}
	v := b.put(it, most)
	if v == refused {
		v = dropped
		b.lost++
	}
	return v, b.state()
}

// state is pressure for callers that hold mu.
func (b *inbox) state() state {
	switch {
	case len(b.queue) < b.max || b.ended:
		return open
	case b.policy == Block:
		return blocking
	case b.policy == Fail:
		return failing
	default:
		return open
	}
}

// put puts a message into the queue if that has fewer than most messages; else the policy decides.
func (b *inbox) put(it item, most int) verdict {
	v := taken
	switch {
	case b.ended:
		return taken // Nobody waits for it any more.
	case len(b.queue) < most:
	case b.policy == DropNewest:
		b.lost++
		return dropped
	case b.policy == DropOldest:
		b.lost++
		b.queue[0] = item{} // Let go of it.
		b.queue = b.queue[1:]
		v = dropped
	default:
		return refused
	}
	b.queue = append(b.queue, it)
	if len(b.queue) == 1 {
		b.notify()
	}
	return v
}

// hasRoom reports whether a message would be taken without another one being dropped.
func (b *inbox) hasRoom() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue) < b.max
}

// pressure says whether publishers must wait, fail or go on.
func (b *inbox) pressure() state {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state()
}

// waitForRoom waits until the subscriber has taken the queue, if that is full, or ctx ends.
func (b *inbox) waitForRoom(ctx context.Context) error {
	b.mu.Lock()
	if len(b.queue) < b.max || b.ended {
		b.mu.Unlock()
		return nil
	}
	if b.emptied == nil {
		b.emptied = make(chan struct{})
	}
	emptied := b.emptied
	b.mu.Unlock()
	select {
	case <-emptied:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take takes all messages, and gives an empty list in their place. Full says that somebody
// may wait for the room.
func (b *inbox) take(empty []item) (queue []item, full, ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue, full = b.queue, len(b.queue) >= b.max
	b.queue, b.overflow = empty, 0
	b.release()
	return queue, full, b.ended
}

// release wakes those who wait for room. The caller holds mu.
func (b *inbox) release() {
	if b.emptied != nil {
		close(b.emptied)
		b.emptied = nil
	}
}

// end ends the inbox, and reports whether it had not ended.
func (b *inbox) end() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return false
	}
	b.ended, b.queue = true, nil
	b.release()
	b.notify()
	return true
}

// losses returns how many messages were dropped, and how many wait.
func (b *inbox) losses() (lost uint64, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost, len(b.queue)
}

func (b *inbox) notify() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
