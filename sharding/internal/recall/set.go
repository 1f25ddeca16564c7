// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package recall

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What a desk knows of one set of the store: first the states and wishes, then the set, with what is to be written: put
// notes a wish, take hands wishes to a call, and giveBack takes them back when nobody knows what has become of it.

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

// wish is what was asked for of an id, and when.
type wish struct {
	id    string
	op    op
	waits bool // Whoever has asked waits for the answer: Kept or Unkept.
	since machine.Instant
}

// holder is what a set is for: it is told what the store has said of it.
type holder interface {
	// read takes the ids of the set.
	read(now machine.Instant, ids []string, out *Outbox)
	// wrote takes what was written, without the ids for which there was no room.
	wrote(now machine.Instant, done []wish, full []wish, out *Outbox)
	// failed takes that a call has failed, or that none can be made, and why.
	failed(now machine.Instant, why string, out *Outbox)
	// writable reports whether the set may be changed yet.
	writable() bool
}

// set is what a desk knows of one set of the store. What was asked for last of an id is in wishes, else in flight,
// else written.
type set struct {
	holder

	name  Set
	epoch protocol.Epoch

	state   state
	session uint64 // Of the last call; the answers to all others mean nothing.
	queued  bool   // The set is in the queue for a call.

	wishes  map[string]wish // Are to be written. Nil when there are none.
	line    []string        // The ids of wishes in the order in which they came; some may be gone.
	forgets int             // Of wishes, those with opForget.
	flight  []wish          // Are being written, in the order of their ids.

	failures int
	again    machine.Instant // When a closed set goes on.
	why      string
}

// writing returns how many ids are to be written, or being written.
func (s *set) writing() int { return len(s.wishes) + len(s.flight) }

// asked returns what was asked for last of an id and is not written yet.
func (s *set) asked(id string) op {
	if w, there := s.wishes[id]; there {
		return w.op
	}
	if i, there := s.flying(id); there {
		return s.flight[i].op
	}
	return opNone
}

// flying finds an id among those that are being written.
func (s *set) flying(id string) (int, bool) {
	return slices.BinarySearchFunc(s.flight, id, func(w wish, id string) int { return strings.Compare(w.id, id) })
}

// put notes a wish in the place of an earlier one.
func (s *set) put(w wish) {
	if s.wishes == nil {
		s.wishes = map[string]wish{}
	}
	was, there := s.wishes[w.id]
	if !there {
		s.line = append(s.line, w.id)
	}
	if was.op == opForget {
		s.forgets--
	}
	if w.op == opForget {
		s.forgets++
	}
	s.wishes[w.id] = w
}

// drop takes a wish back.
func (s *set) drop(id string) {
	if s.wishes[id].op == opForget {
		s.forgets--
	}
	if delete(s.wishes, id); len(s.wishes) == 0 {
		s.wishes, s.line = nil, nil
	}
}

// take moves up to n wishes, the oldest first, to those that are being written.
func (s *set) take(n int) {
	for len(s.wishes) > 0 && len(s.flight) < n {
		id := s.line[0]
		s.line = s.line[1:]
		if w, there := s.wishes[id]; there {
			s.flight = append(s.flight, w)
			s.drop(id)
		}
	}
	slices.SortFunc(s.flight, func(a, b wish) int { return strings.Compare(a.id, b.id) })
}

// giveBack makes wishes again of what is being written, unless something else was asked for meanwhile.
func (s *set) giveBack() {
	flight := s.flight
	s.flight = nil
	for _, w := range flight {
		if _, later := s.wishes[w.id]; !later {
			s.put(w)
		}
	}
}

// landed takes what is being written as written, but for the ids for which there was no room.
func (s *set) landed(without []string) (done, full []wish) {
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

// change is the call that writes what is being written.
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
