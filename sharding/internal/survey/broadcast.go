// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Telling all running entities of a kind a message, in rounds: [Broadcast.Next] returns which homes are to tell which
// shards, [Broadcast.Answered] takes their answers, and a shard that has moved is told at its next home in the next
// round.

// Broadcast tells all shards of a kind, each at one home. Invariants:
//
//	W1  a shard is asked for at one home at a time, under one epoch;
//	W2  it is asked for again only if that home has told none of its entities: it says so, or was not asked;
//	W3  while the number of shards changes, no shard of the former layout is asked for before all of the next one are told
//	    or given up: entities move only from the former to the next layout, so that none is told in both.
type Broadcast struct {
	question Question
	open     map[protocol.ShardID]bool // The shards of which no entity was told, and that are not given up.
	asked    map[gossip.NodeID][]Place
	result   Outcome
}

// Outcome is the result of a [Broadcast].
type Outcome struct {
	Reached, Full int
	Shards        int       // The shards of which all entities were told.
	Cut           int       // The shards that moved, or whose limit passed, before all entities were told.
	Lost          int       // The shards whose homes did not answer: some of their entities may have been told.
	Missing       []Missing // The homes that did not answer, each with its last reason.
}

// NewBroadcast returns the broadcast of a question of [TypeTell] to shards of a kind.
func NewBroadcast(q Question, shards []protocol.ShardID) *Broadcast {
	b := &Broadcast{question: q, open: make(map[protocol.ShardID]bool, len(shards))}
	for _, s := range shards {
		b.open[s] = true
	}
	return b
}

// next returns the shards to ask for in the next round, sorted: the open ones of the latest layout.
func (b *Broadcast) next() []protocol.ShardID {
	var all []protocol.ShardID
	for s, open := range b.open { //quorate:unordered they are sorted below
		if open {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	first := slices.IndexFunc(all, func(s protocol.ShardID) bool { return s.Layout() == all[len(all)-1].Layout() })
	return all[max(first, 0):]
}

// Next returns the questions of the next round. home returns where a shard lives, zero if that is not known.
func (b *Broadcast) Next(home func(protocol.ShardID) (gossip.NodeID, protocol.Epoch)) []Part {
	b.asked = make(map[gossip.NodeID][]Place)
	for _, s := range b.next() {
		if node, epoch := home(s); !node.IsZero() {
			b.asked[node] = append(b.asked[node], Place{s, epoch})
		}
	}
	var parts []Part
	for _, node := range slices.SortedFunc(maps.Keys(b.asked), gossip.NodeID.Compare) {
		q := b.question
		q.Shards = b.asked[node]
		parts = append(parts, Part{node, q})
	}
	return parts
}

// Answered takes the result of a round.
func (b *Broadcast) Answered(f Finished) {
	for _, m := range f.Missing {
		b.missing(m)
	}
	for _, s := range f.Answers {
		if s.Answer.Fault != FaultNone {
			continue // The node does not run the kind: it has told none.
		}
		asked := b.asked[s.Node]
		for _, told := range s.Answer.Told {
			if slices.ContainsFunc(asked, func(p Place) bool { return p.Shard == told.Shard }) && b.open[told.Shard] {
				b.told(told)
			}
		}
		for _, p := range asked {
			if !slices.ContainsFunc(s.Answer.Told, func(t Told) bool { return t.Shard == p.Shard }) && b.open[p.Shard] {
				b.open[p.Shard] = false
				b.result.Lost++
			}
		}
	}
	b.asked = nil
}

func (b *Broadcast) told(t Told) {
	if t.Away {
		return
	}
	b.open[t.Shard] = false
	b.result.Reached += int(t.Reached)
	b.result.Full += int(t.Full)
	if t.Cut {
		b.result.Cut++
	} else {
		b.result.Shards++
	}
}

func (b *Broadcast) missing(m Missing) {
	b.result.Missing = slices.DeleteFunc(b.result.Missing, func(o Missing) bool { return o.Node == m.Node })
	b.result.Missing = append(b.result.Missing, m)
	if m.Unasked {
		return
	}
	for _, p := range b.asked[m.Node] {
		if b.open[p.Shard] {
			b.open[p.Shard] = false
			b.result.Lost++
		}
	}
}

// Open returns how many shards are still to be told.
func (b *Broadcast) Open() int {
	n := 0
	for _, open := range b.open { //quorate:unordered a count
		if open {
			n++
		}
	}
	return n
}

// Outcome returns the result so far.
func (b *Broadcast) Outcome() Outcome {
	o := b.result
	o.Missing = slices.SortedFunc(slices.Values(o.Missing), func(x, y Missing) int { return x.Node.Compare(y.Node) })
	return o
}
