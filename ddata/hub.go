// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// From changes to subscribers: the driver's goroutine hands changed keys over (changed), of
// which those are kept that somebody waits for; at most once an interval they go to the
// lists of the subscribers (deliver). Subscribers take them from there, and look at the
// table only then.

// hub has the subscribers to changes of keys, and tells them of changed keys, at intervals.
type hub struct {
	count atomic.Int64 // How many there are: without any, changes are not looked at.

	mu       sync.Mutex // Guards what follows; held for lists of keys only.
	interval time.Duration
	keys     map[string][]*subscriber
	prefixes []*subscriber
	dirty    map[string]struct{} // Keys that have changed and were not delivered.
	last     time.Time           // When keys were delivered last.
	timer    *time.Timer         // Delivers; nil while nothing waits.
	ended    bool
}

// maxSubscriberKeys is how many changed keys wait for one subscriber. One that falls further
// behind is told that it has missed some, and is shown everything anew.
const maxSubscriberKeys = 65_536

// subscriber is a list of changed keys that wait to be read.
type subscriber struct {
	hub    *hub
	name   string // A key, or a prefix.
	prefix bool
	wake   chan struct{} // Holds one token when there may be something to read.

	mu      sync.Mutex // Guards what follows; taken within that of the hub.
	waiting map[string]struct{}
	queue   []string
	missed  int // Keys that were dropped since the list was full, or were wiped from the table.
	ended   bool
}

// subscribe adds a subscriber.
func (h *hub) subscribe(name string, prefix bool) *subscriber {
	s := &subscriber{hub: h, name: name, prefix: prefix, wake: make(chan struct{}, 1), waiting: map[string]struct{}{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.ended = h.ended; s.ended {
		return s
	}
	h.count.Add(1)
	if prefix {
		h.prefixes = append(slices.Clone(h.prefixes), s)
		return s
	}
	if h.keys == nil {
		h.keys = map[string][]*subscriber{}
	}
	h.keys[name] = append(slices.Clone(h.keys[name]), s)
	return s
}

// close ends a subscriber. Doing so again does nothing.
func (s *subscriber) close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	is := func(o *subscriber) bool { return o == s }
	if !s.end() {
		return
	}
	h.count.Add(-1)
	h.prefixes = slices.DeleteFunc(slices.Clone(h.prefixes), is)
	if left := slices.DeleteFunc(slices.Clone(h.keys[s.name]), is); len(left) > 0 {
		h.keys[s.name] = left
	} else {
		delete(h.keys, s.name)
	}
}

// end marks the subscriber as ended, and reports whether it was not.
func (s *subscriber) end() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.ended = true
	s.notify()
	return true
}

func (s *subscriber) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// changed takes keys that have changed.
func (h *hub) changed(keys []string) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range keys {
		if h.wanted(key) {
			if h.dirty == nil {
				h.dirty = map[string]struct{}{}
			}
			h.dirty[key] = struct{}{}
		}
	}
	if len(h.dirty) == 0 || h.timer != nil || h.ended {
		return
	}
	if wait := h.interval - time.Since(h.last); wait > 0 {
		h.timer = time.AfterFunc(wait, h.due) // Stopped by end.
		return
	}
	h.deliver()
}

// wiped tells the subscribers to some prefixes and keys that n keys were forgotten.
func (h *hub) wiped(n int, prefix, key func(name string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.prefixes {
		if prefix(s.name) {
			s.miss(n)
		}
	}
	for name, all := range h.keys {
		if !key(name) {
			continue
		}
		for _, s := range all {
			s.miss(1)
		}
	}
}

// wanted reports whether anybody has subscribed to a key.
func (h *hub) wanted(key string) bool {
	return len(h.keys[key]) > 0 || slices.ContainsFunc(h.prefixes, func(s *subscriber) bool { return strings.HasPrefix(key, s.name) })
}

// due delivers when the interval is over.
func (h *hub) due() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = nil
	if !h.ended {
		h.deliver()
	}
}

// deliver puts the keys into the lists of those who want them. The caller holds mu.
func (h *hub) deliver() {
	h.last = time.Now()
	dirty := h.dirty
	h.dirty = nil
	for key := range dirty {
		for _, s := range h.keys[key] {
			s.add(key)
		}
		for _, s := range h.prefixes {
			if strings.HasPrefix(key, s.name) {
				s.add(key)
			}
		}
	}
}

// add puts a key into the list, unless it waits there already.
func (s *subscriber) add(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, waits := s.waiting[key]; waits || s.ended {
		return
	}
	defer s.notify()
	if s.missed > 0 || len(s.queue) >= maxSubscriberKeys {
		s.lose(1)
		return
	}
	s.waiting[key] = struct{}{}
	s.queue = append(s.queue, key)
}

// miss has the subscriber told that changes were dropped.
func (s *subscriber) miss(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.lose(n)
		s.notify()
	}
}

// lose drops what waits in favour of saying that changes were dropped. The caller holds mu.
func (s *subscriber) lose(n int) {
	s.missed += n
	s.queue, s.waiting = nil, map[string]struct{}{}
}

// nextKey is what take returns: the next key, or what else a subscriber must know.
type nextKey struct {
	key    string // "" for none.
	missed int
	ended  bool
}

// take takes the next key, or says what has happened instead.
func (s *subscriber) take() nextKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return nextKey{ended: true}
	case s.missed > 0:
		n := s.missed
		s.missed = 0
		return nextKey{missed: n}
	case len(s.queue) == 0:
		s.queue = nil // Let go of what was read.
		return nextKey{}
	}
	key := s.queue[0]
	s.queue = s.queue[1:]
	delete(s.waiting, key)
	return nextKey{key: key}
}

// end ends all subscribers.
func (h *hub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	for _, s := range h.prefixes {
		s.end()
	}
	for _, all := range h.keys {
		for _, s := range all {
			s.end()
		}
	}
	h.prefixes, h.keys, h.dirty = nil, nil, nil
}
