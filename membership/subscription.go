// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"slices"
	"sync"
)

// SubscriptionBuffer is how many events wait for a subscriber. A subscriber that falls
// further behind misses events, see [Missed].
const SubscriptionBuffer = 1024

// Subscription delivers events to one subscriber. A subscriber that stops
// reading costs [SubscriptionBuffer] events and no more; Close ends it.
type Subscription struct {
	hub  *hub
	wake chan struct{} // Holds one token when there may be something to read.

	// All below is guarded by hub.mu.
	queue  []Event
	missed int // Events dropped since the queue overflowed; the queue is empty then.
	ended  bool
}

// Next returns the next event. It waits for an event until ctx ends, and returns
// [ErrClosed] when the subscription or the node has ended and every event has been read.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok, ended := s.take(); ok {
			return e, nil
		} else if ended {
			return nil, ErrClosed
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.wake:
		}
	}
}

// Close ends the subscription. Calling it again does nothing.
func (s *Subscription) Close() { s.hub.remove(s) }

// take returns the next event, if there is one.
func (s *Subscription) take() (e Event, ok, ended bool) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.missed > 0 {
		e, s.queue = Missed{N: s.missed}, []Event{Snapshot{View: s.hub.view}}
		s.missed = 0
		return e, true, false
	}
	if len(s.queue) == 0 {
		return nil, false, s.ended
	}
	e, s.queue = s.queue[0], s.queue[1:]
	return e, true, false
}

// hub keeps the last view and the subscribers.
type hub struct {
	mu   sync.Mutex // Guards everything below and in the subscriptions; held for appends only.
	view View
	subs []*Subscription
	done bool
}

// current returns the last view.
func (h *hub) current() View {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.view
}

// subscribe returns a subscription that begins with a snapshot.
func (h *hub) subscribe() *Subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &Subscription{hub: h, wake: make(chan struct{}, 1), queue: []Event{Snapshot{View: h.view}}, ended: h.done}
	h.subs = append(h.subs, s)
	return s
}

// remove ends one subscription.
func (h *hub) remove(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.ended = true
	h.subs = slices.DeleteFunc(h.subs, func(o *Subscription) bool { return o == s })
	s.notify()
}

// advance stores a new view and tells the subscribers what changed. It returns the view
// before and the events.
func (h *hub) advance(next View) (prev View, events []Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	prev = h.view
	events = difference(prev, next)
	h.view = next
	h.tell(events)
	return prev, events
}

// publish tells the subscribers of one event.
func (h *hub) publish(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tell([]Event{e})
}

// tell appends events to every queue; its caller holds the lock.
func (h *hub) tell(events []Event) {
	if len(events) == 0 {
		return
	}
	for _, s := range h.subs {
		if s.missed > 0 || len(s.queue)+len(events) > SubscriptionBuffer {
			s.missed += len(s.queue) + len(events)
			s.queue = nil
		} else {
			s.queue = append(s.queue, events...)
		}
		s.notify()
	}
}

// notify wakes the reader.
func (s *Subscription) notify() {
	select {
	case s.wake <- struct{}{}:
	default: // A token is in the channel already.
	}
}

// end lets every subscriber read the rest of its queue.
func (h *hub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = true
	for _, s := range h.subs {
		s.ended = true
		s.notify()
	}
}
