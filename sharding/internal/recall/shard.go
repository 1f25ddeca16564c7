// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package recall

import (
	"slices"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What a desk knows of one shard: first the states and wishes, then the shard, with what is to be written: put notes a
// wish, take hands wishes to a call, and giveBack takes them back when nobody knows what has become of it.

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
	since machine.Instant
}

// shard is what a desk knows of one shard. What was asked for last of an id is in wishes, else in
// flight, else written.
type shard struct {
	id    protocol.ShardID
	epoch protocol.Epoch

	state   state
	session uint64 // Of the last call; the answers to all others mean nothing.
	queued  bool   // The shard is in the queue for a call.
	known   bool   // The set was read since the shard was last served.

	pending []string            // Are to begin, the first one first.
	gone    map[string]struct{} // Of pending, those that were forgotten since they were read, and others. Nil when none are pending.

	handed   map[string]struct{} // Are in an outbox to begin, and were not forgotten since. Nil when there are none.
	wishes   map[string]wish     // Are to be written. Nil when there are none.
	line     []string            // The ids of wishes in the order in which they came; some may be gone.
	forgets  int                 // Of wishes, those with opForget.
	flight   []wish              // Are being written, in the order of their ids.
	settling bool                // Settled is to follow.

	failures int
	again    machine.Instant // When a closed shard goes on.
	why      string
}

// writing returns how many ids are to be written, or being written.
func (s *shard) writing() int { return len(s.wishes) + len(s.flight) }

// asked returns what was asked for last of an id and is not written yet.
func (s *shard) asked(id string) op {
	if w, there := s.wishes[id]; there {
		return w.op
	}
	if i, there := s.flying(id); there {
		return s.flight[i].op
	}
	return opNone
}

// flying finds an id among those that are being written.
func (s *shard) flying(id string) (int, bool) {
	return slices.BinarySearchFunc(s.flight, id, func(w wish, id string) int { return compare(w.id, id) })
}

// put notes a wish in the place of an earlier one.
func (s *shard) put(id string, o op, since machine.Instant) {
	if s.wishes == nil {
		s.wishes = map[string]wish{}
	}
	was, there := s.wishes[id]
	if !there {
		s.line = append(s.line, id)
	}
	if was.op == opForget {
		s.forgets--
	}
	if o == opForget {
		s.forgets++
	}
	s.wishes[id] = wish{id, o, since}
	if o == opForget && len(s.pending) > 0 {
		if s.gone == nil {
			s.gone = map[string]struct{}{}
		}
		s.gone[id] = struct{}{}
	}
}

// await has ids begin, the first one first.
func (s *shard) await(ids []string) { s.pending, s.gone = ids, nil }

// halt has nothing begin any more, also not what is in an outbox.
func (s *shard) halt() { s.pending, s.gone, s.handed = nil, nil, nil }

// hand notes that ids are in an outbox to begin.
func (s *shard) hand(ids []string) {
	if s.handed == nil {
		s.handed = make(map[string]struct{}, len(ids))
	}
	for _, id := range ids {
		s.handed[id] = struct{}{}
	}
}

// drop takes a wish back.
func (s *shard) drop(id string) {
	if s.wishes[id].op == opForget {
		s.forgets--
	}
	if delete(s.wishes, id); len(s.wishes) == 0 {
		s.wishes, s.line = nil, nil
	}
}

// take moves up to n wishes, the oldest first, to those that are being written.
func (s *shard) take(n int) {
	for len(s.wishes) > 0 && len(s.flight) < n {
		id := s.line[0]
		s.line = s.line[1:]
		if w, there := s.wishes[id]; there {
			s.flight = append(s.flight, w)
			s.drop(id)
		}
	}
	slices.SortFunc(s.flight, func(a, b wish) int { return compare(a.id, b.id) })
}

// giveBack makes wishes again of what is being written, unless something else was asked for meanwhile.
func (s *shard) giveBack() {
	flight := s.flight
	s.flight = nil
	for _, w := range flight {
		if _, later := s.wishes[w.id]; !later {
			s.put(w.id, w.op, w.since)
		}
	}
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}
