// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The life of a snapshot, in this order: Put or Begin takes it in, Take, End, Expire or Clear takes it
// out. What is lost on the way is remembered by Lose, and told by LossOf.

// Limits bound the snapshots of a shard, in bytes as [protocol.Snapshot.Size] counts them, but for
// Entity, which bounds the memory of one alone. 0: none is taken.
type Limits struct{ Entity, Shard int }

// maxLost is how many losses a Buffer remembers, the latest.
const maxLost = 16

// Buffer holds the snapshots of the entities of a shard that have no instance. Invariants, between
// calls:
//
//	B1  an entity has one snapshot at most, the one that its last instance gave;
//	B2  bytes is what all of them count together, at most Limits.Shard but for what Begin brought.
//
// The zero value takes none.
type Buffer struct {
	limits Limits
	kept   map[string][]byte // By entity; nil before the first.
	bytes  int
	since  machine.Instant // When the hosting began, or the last snapshot was put.
	lost   []Lost          // The latest losses, the oldest first.
}

// Lost is a memory that was lost.
type Lost struct {
	Entity string
	Loss   protocol.Loss
	At     machine.Instant // When this node has learned of it.
	came   bool            // The home before has told of it.
}

// New returns an empty buffer.
func New(l Limits) Buffer { return Buffer{limits: l} }

// Len returns how many snapshots there are.
func (b *Buffer) Len() int { return len(b.kept) }

// Put takes the snapshot of an entity whose instance has stopped, or says why it is lost. No bytes and
// no Loss: the entity has nothing to take along.
func (b *Buffer) Put(now machine.Instant, s protocol.Snapshot) protocol.Loss {
	b.drop(s.Entity)
	switch {
	case s.Loss != protocol.LossNone:
	case len(s.Data) == 0:
		return protocol.LossNone
	case len(s.Data) > b.limits.Entity:
		s.Loss = protocol.LossTooLarge
	case b.bytes+s.Size() > b.limits.Shard:
		s.Loss = protocol.LossNoRoom
	default:
		b.keep(s)
		b.since = now
		return protocol.LossNone
	}
	b.Lose(now, s.Entity, s.Loss)
	return s.Loss
}

func (b *Buffer) keep(s protocol.Snapshot) {
	if b.kept == nil {
		b.kept = make(map[string][]byte)
	}
	b.kept[s.Entity] = s.Data
	b.bytes += s.Size()
	b.lost = slices.DeleteFunc(b.lost, func(l Lost) bool { return l.Entity == s.Entity })
}

// drop forgets the snapshot of an entity, if there is one.
func (b *Buffer) drop(entity string) {
	if data, there := b.kept[entity]; there {
		b.bytes -= protocol.Snapshot{Entity: entity, Data: data}.Size()
		delete(b.kept, entity)
	}
}

// Take gives the snapshot of an entity to an instance that starts; nil: there is none.
func (b *Buffer) Take(entity string) []byte {
	data := b.kept[entity]
	b.drop(entity)
	return data
}

// Lose remembers that the memory of an entity was lost.
func (b *Buffer) Lose(now machine.Instant, entity string, why protocol.Loss) {
	b.note(Lost{Entity: entity, Loss: why, At: now})
}

func (b *Buffer) note(l Lost) {
	if len(b.lost) == maxLost {
		b.lost = slices.Delete(b.lost, 0, 1)
	}
	b.lost = append(b.lost, l)
}

// LossOf returns the last loss of an entity's memory that is remembered; false for none.
func (b *Buffer) LossOf(entity string) (Lost, bool) {
	for _, l := range slices.Backward(b.lost) {
		if l.Entity == entity {
			return l, true
		}
	}
	return Lost{}, false
}

// Begin takes what the home before gave, in the place of all that was there, and returns the entities
// whose memory was lost on the way here: those of other losses were told of where they came about.
func (b *Buffer) Begin(now machine.Instant, all []protocol.Snapshot) (lost []string) {
	b.Clear()
	b.since = now
	for _, s := range all {
		if s.Loss == protocol.LossNone {
			b.drop(s.Entity)
			b.keep(s)
			continue
		}
		b.note(Lost{Entity: s.Entity, Loss: s.Loss, At: now, came: true})
		if s.Loss == protocol.LossOnTheWay {
			lost = append(lost, s.Entity)
		}
	}
	return lost
}

// End gives everything to the next home: the snapshots, sorted by entity, then the losses that came
// about here.
func (b *Buffer) End() []protocol.Snapshot {
	var all []protocol.Snapshot
	for _, entity := range b.entities() {
		all = append(all, protocol.Snapshot{Entity: entity, Data: b.kept[entity]})
	}
	for _, l := range b.lost {
		if !l.came {
			all = append(all, protocol.Snapshot{Entity: l.Entity, Loss: l.Loss})
		}
	}
	b.Clear()
	return all
}

// Expire drops the snapshots of a buffer that nobody has asked for in a time, and returns their
// entities, sorted. 0: snapshots are kept for ever.
func (b *Buffer) Expire(now machine.Instant, after time.Duration) (lost []string) {
	if len(b.kept) == 0 || after <= 0 || now.Sub(b.since) < after {
		return nil
	}
	lost = b.entities()
	b.kept, b.bytes = nil, 0
	for _, entity := range lost {
		b.Lose(now, entity, protocol.LossIdle)
	}
	return lost
}

// Clear forgets everything.
func (b *Buffer) Clear() { b.kept, b.bytes, b.lost = nil, 0, nil }

// entities returns the entities with a snapshot, sorted.
func (b *Buffer) entities() []string { return slices.Sorted(maps.Keys(b.kept)) }
