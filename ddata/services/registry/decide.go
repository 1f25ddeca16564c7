// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/ddata/crdt"
)

// What is decided about entries, without a clock and without I/O: which of them are seen
// (roll), what a subscriber is to be told (told), and what it is not told yet (doubts).

// content is the value of a name: the contents of its entries by place. Each place is
// written by one node alone and removed by any, so that writes never compete: what the last
// write wins over is an earlier write of the same node.
type content = crdt.LWWMap[string, []byte]

// roll returns the entries of a name, ordered by node and number, and how many places mean
// nothing.
func roll(name string, c content) (all []Entry, malformed int) {
	for place, b := range c.All() {
		e, err := decode(name, place, b)
		if err != nil {
			malformed++
			continue
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int { return compare(a.entryID(), b.entryID()) })
	return all, malformed
}

func compare(a, b entryID) int {
	if c := a.node.Compare(b.node); c != 0 {
		return c
	}
	return cmp.Compare(a.id, b.id)
}

// EventKind says what has happened to an entry.
type EventKind uint8

// The kinds of events.
const (
	// Appeared: the entry is there, and the subscriber was not told of it before, or was
	// told that it has vanished.
	Appeared EventKind = iota + 1
	// Updated: the entry has another address or other metadata.
	Updated
	// Vanished: the entry was taken back, or its node is downed or gone.
	Vanished
)

// String returns the name of the kind.
func (k EventKind) String() string {
	switch k {
	case Appeared:
		return "appeared"
	case Updated:
		return "updated"
	case Vanished:
		return "vanished"
	default:
		return "none"
	}
}

// Event is what a subscriber is told of one entry.
type Event struct {
	Kind  EventKind
	Entry Entry // For Vanished: as the subscriber has known it.
	// Missed is how many updates of the entry the subscriber was not told of, since it
	// was told of the one before: a subscriber that is slow finds them all in one.
	Missed uint64
}

// told is what a subscriber was told of.
type told map[entryID]Entry

// learn returns what a subscriber is to be told when these are the entries, and takes it as
// told: first what has vanished, then the rest, each by node and number.
func (t told) learn(now []Entry) (events []Event) {
	left := maps.Clone(t)
	for _, e := range now {
		i := e.entryID()
		before, known := t[i]
		delete(left, i)
		switch {
		case !known:
			events = append(events, Event{Kind: Appeared, Entry: e})
		case before.Version < e.Version:
			events = append(events, Event{Kind: Updated, Entry: e, Missed: e.Version - before.Version - 1})
		default:
			continue // An older version is on its way out, since the node that has registered the entry puts it right.
		}
		t[i] = e
	}
	var gone []Event
	for _, i := range slices.SortedFunc(maps.Keys(left), compare) {
		gone = append(gone, Event{Kind: Vanished, Entry: left[i]})
		delete(t, i)
	}
	return append(gone, events...)
}

// doubts are entries that a subscriber was told of and that are missing in the latest answer of
// another node, with the time since when. On a node that does not hold the name each answer may
// come from another replica, and that replica may not have heard of the entry yet.
type doubts map[entryID]time.Time

// doubtFor is how long an entry must be missing in the answers before the subscriber is told that
// it has vanished.
const doubtFor = time.Second

// fill returns the entries with those that are in doubt.
func (d doubts) fill(all []Entry, t told, now time.Time) []Entry {
	there := map[entryID]bool{}
	for _, e := range all {
		there[e.entryID()] = true
	}
	maps.DeleteFunc(d, func(i entryID, _ time.Time) bool { _, known := t[i]; return there[i] || !known })
	for _, i := range slices.SortedFunc(maps.Keys(t), compare) {
		if there[i] {
			continue
		}
		since, doubted := d[i]
		if !doubted {
			d[i], since = now, now
		}
		if now.Sub(since) < doubtFor {
			all = append(all, t[i])
		}
	}
	return all
}
