// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembering

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What a machine knows of one set of the store: first the states and requests, then the set, with what is to be
// written: put notes a request, take hands requests to a call, and giveBack takes them back when nobody knows what has
// become of it.

// Set names a set of the store: that of one shard of a layout with so many shards. The zero value is the
// index of a kind, whose ids are the numbers of shards of which there may be sets that are not empty.
type Set struct{ Number, Of uint32 }

// IsIndex reports whether the name is that of the index.
func (s Set) IsIndex() bool { return s == Set{} }

// compare orders by the number of shards, and by number.
func (s Set) compare(o Set) int {
	return cmp.Or(cmp.Compare(s.Of, o.Of), cmp.Compare(s.Number, o.Number))
}

// op is what is to become of an id.
type op uint8

const (
	opNone op = iota
	opRemember
	opForget
)

type state uint8

const (
	closed   state = iota // The store is to be called, now or after a pause.
	opening               // Open is under way.
	open                  // The set may be changed.
	changing              // Change is under way.
)

// request says what was asked for of an id, and when.
type request struct {
	id    string
	op    op
	waits bool // Whoever has asked waits for the answer: Kept or Unkept.
	since machine.Instant
}

// holder is the owner of a set, which handles the answers of the store: a shard, a former set or the index.
type holder interface {
	// read takes the ids of the set.
	read(now machine.Instant, ids []string, out *Outbox)
	// wrote takes what was written, without the ids for which there was no room.
	wrote(now machine.Instant, done []request, full []request, out *Outbox)
	// failed takes that a call has failed, or that none can be made, and why.
	failed(now machine.Instant, why string, out *Outbox)
	// writable reports whether the set may be changed yet.
	writable() bool
}

// set is what a machine knows of one set of the store. What was asked for last of an id is in requests, else in flight,
// else written.
type set struct {
	holder

	name  Set
	epoch protocol.Epoch

	state   state
	session uint64 // Of the last call; the answers to all others mean nothing.
	queued  bool   // The set is in the queue for a call.

	requests map[string]request // Are to be written. Nil when there are none.
	line     []string           // The ids of requests in the order in which they came; some may be gone.
	forgets  int                // Of requests, those with opForget.
	flight   []request          // Are being written, in the order of their ids.

	failures int
	again    machine.Instant // When a closed set goes on.
	why      string
}

// writing returns how many ids are to be written, or being written.
func (s *set) writing() int { return len(s.requests) + len(s.flight) }

// asked returns what was asked for last of an id and is not written yet.
func (s *set) asked(id string) op {
	if w, there := s.requests[id]; there {
		return w.op
	}
	if i, there := s.inFlight(id); there {
		return s.flight[i].op
	}
	return opNone
}

// inFlight returns the index of an id in flight, and whether it is there.
func (s *set) inFlight(id string) (int, bool) {
	return slices.BinarySearchFunc(s.flight, id, func(w request, id string) int { return strings.Compare(w.id, id) })
}

// put records a request, which replaces an earlier one of the same id.
func (s *set) put(w request) {
	if s.requests == nil {
		s.requests = map[string]request{}
	}
	was, there := s.requests[w.id]
	if !there {
		s.line = append(s.line, w.id)
	}
	if was.op == opForget {
		s.forgets--
	}
	if w.op == opForget {
		s.forgets++
	}
	s.requests[w.id] = w
}

// drop removes the request of an id, if there is one.
func (s *set) drop(id string) {
	if s.requests[id].op == opForget {
		s.forgets--
	}
	if delete(s.requests, id); len(s.requests) == 0 {
		s.requests, s.line = nil, nil
	}
}

// take moves up to n requests, the oldest first, to those that are being written.
func (s *set) take(n int) {
	for len(s.requests) > 0 && len(s.flight) < n {
		id := s.line[0]
		s.line = s.line[1:]
		if w, there := s.requests[id]; there {
			s.flight = append(s.flight, w)
			s.drop(id)
		}
	}
	slices.SortFunc(s.flight, func(a, b request) int { return strings.Compare(a.id, b.id) })
}

// giveBack turns what is being written into requests again, unless something else was asked for meanwhile.
func (s *set) giveBack() {
	flight := s.flight
	s.flight = nil
	for _, w := range flight {
		if _, later := s.requests[w.id]; !later {
			s.put(w)
		}
	}
}

// complete ends the write under way, and returns what was written and the requests for which there was no room.
func (s *set) complete(without []string) (done, full []request) {
	for _, w := range s.flight {
		if w.op == opRemember && slices.Contains(without, w.id) {
			full = append(full, w)
		} else {
			done = append(done, w)
		}
	}
	s.flight = nil
	return done, full
}

// change returns the call that writes what is in flight.
func (s *set) change() Change {
	c := Change{Set: s.name, Session: s.session}
	for _, w := range s.flight {
		if w.op == opRemember {
			c.Remember = append(c.Remember, w.id)
		} else {
			c.Forget = append(c.Forget, w.id)
		}
	}
	return c
}
