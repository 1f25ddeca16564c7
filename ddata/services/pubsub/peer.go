// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/transport"
)

// The way to another node. Messages are put into a batch (add), which leaves when the lane
// takes its next one (drain), or at once when the lane has nothing to do, or when the batch
// is large. A lane that is full keeps the batch here; wait sends it when there is room.

const (
	// maxBatch is the size from which on a batch leaves at once, and a message goes alone.
	// A batch with one message more still is below the smallest frame.
	maxBatch = 24 << 10
	// pauseFor is how long a publisher waits for the word that there is room again: words
	// may be lost, and the next message brings another one if there is none.
	pauseFor = time.Second
)

// peer sends messages and signals to another node, in batches.
type peer struct {
	p    *PubSub
	node gossip.NodeID
	lane transport.Lane

	// Made once, for all batches.
	copy  func(dst []byte) []byte
	drain func()

	mu         sync.Mutex // Guards what follows; taken before the lock of the lane.
	batch      []byte
	messages   int    // How many of them are in the batch.
	last       string // The topic of the last one; "" at the beginning.
	collecting bool   // The lane calls drain.
	waiting    bool   // A goroutine waits for room in the lane.
	paused     map[string]*pausedTopic
}

// pausedTopic is a topic whose subscribers on the node have no room.
type pausedTopic struct {
	state state
	until time.Time
	over  chan struct{} // Closed when there is room.
}

// newPeer returns the peer for a node.
func newPeer(p *PubSub, node gossip.NodeID) *peer {
	e := &peer{p: p, node: node, lane: p.node.Transport().Lane(node, machine.LaneMessage)}
	e.copy = func(dst []byte) []byte { return append(dst, e.batch...) }
	e.drain = func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.collecting = false
		_ = e.flush() // What it means for the messages was counted.
	}
	return e
}

// send sends a message as the policy says.
func (e *peer) send(ctx context.Context, m *message, policy Policy) error {
	for {
		held, err := e.add(m)
		full := held != nil || errors.Is(err, transport.ErrFull)
		if !full {
			return err
		}
		if held != nil && held.state == failing {
			return ErrSlow
		}
		if policy == Fail {
			return ErrFull
		}
		if policy == DropNewest {
			e.p.losses.add(lossLane, 1)
			return nil
		}
		if held != nil {
			err = held.wait(ctx)
		} else {
			err = e.lane.Room(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// wait waits until there is room, or until asking again is worth it.
func (h *pausedTopic) wait(ctx context.Context) error {
	timer := time.NewTimer(time.Until(h.until))
	defer timer.Stop()
	select {
	case <-h.over:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// add puts a message into the batch, unless the topic is paused or the lane is full.
func (e *peer) add(m *message) (*pausedTopic, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if held := e.holds(m.topic); held != nil {
		return held, nil
	}
	if len(e.batch) >= maxBatch {
		if err := e.flush(); err != nil {
			return nil, err
		}
	}
	if m.size() >= maxBatch {
		return nil, e.alone(m)
	}
	e.batch = appendMessage(e.batch, m, e.last)
	e.last = m.topic
	e.messages++
	if len(e.batch) < maxBatch && (e.collecting || e.lane.Defer(e.drain)) {
		e.collecting = true
		return nil, nil
	}
	if err := e.flush(); err != nil && !errors.Is(err, transport.ErrFull) {
		return nil, err
	}
	return nil, nil // A full lane gets the batch later.
}

// holds returns why no message of a topic is to be sent at present, nil for no reason.
func (e *peer) holds(topic string) *pausedTopic {
	held := e.paused[topic]
	if held == nil {
		return nil
	}
	if time.Now().Before(held.until) {
		return held
	}
	delete(e.paused, topic)
	return nil
}

// alone sends a large message in a batch of its own, so that the caller learns what has
// become of it.
func (e *peer) alone(m *message) error {
	if len(e.batch) > 0 {
		if err := e.flush(); err != nil {
			return err
		}
	}
	e.batch, e.messages = appendMessage(e.batch, m, ""), 1
	err := e.flush()
	if errors.Is(err, transport.ErrFull) {
		e.batch, e.messages = e.batch[:0], 0 // It is the caller's again.
	}
	return err
}

// flush gives the batch to the lane. A full lane leaves it here; what another error has
// taken is counted. The caller holds mu.
func (e *peer) flush() error {
	if len(e.batch) == 0 {
		return nil
	}
	err := e.lane.Append(component.ServicePubsub, e.copy)
	if errors.Is(err, transport.ErrFull) {
		e.sendWhenRoom()
		return err
	}
	if err == nil {
		e.p.counters.sent.Add(uint64(e.messages))
	} else if e.messages > 0 && !errors.Is(err, transport.ErrTooLarge) { // That is the caller's error.
		e.p.losses.add(lossNode, e.messages)
	}
	if cap(e.batch) > 4*maxBatch {
		e.batch = nil
	}
	e.batch, e.messages, e.last = e.batch[:0], 0, ""
	return err
}

// sendWhenRoom sends the batch as soon as the lane has room. The caller holds mu.
func (e *peer) sendWhenRoom() {
	if e.waiting {
		return
	}
	e.waiting = true
	// The goroutine is owned by the PubSub and ends with it.
	e.p.start(func() {
		for again := true; again; {
			again = e.lane.Room(e.p.ctx) == nil && e.retry()
		}
	})
}

// retry tries to send the batch again, and reports whether it has to wait once more.
func (e *peer) retry() (again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	again = errors.Is(e.flush(), transport.ErrFull)
	e.waiting = again
	return again
}

// signal tells the node whether the subscribers of a topic here have room.
func (e *peer) signal(topic string, s state) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.batch = appendSignal(e.batch, topic, s)
	_ = e.flush() // A word that is lost is not waited for longer than a pause lasts.
}

// handleSignal handles a signal of the node about a topic.
func (e *peer) handleSignal(topic string, s state) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if held := e.paused[topic]; held != nil {
		delete(e.paused, topic)
		close(held.over) // Those who wait ask again.
	}
	if s == open {
		return
	}
	if e.paused == nil {
		e.paused = map[string]*pausedTopic{}
	}
	e.paused[topic] = &pausedTopic{s, time.Now().Add(pauseFor), make(chan struct{})}
}
