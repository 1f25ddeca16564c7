// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What the coordinator expects of the loads. A region tells what its shards have cost of late; a
// shard that has moved since shows in that only after a while. Without an expectation the next
// round would move as many again, and a later one all of them back.

// loads is the part of a coordinator that knows what shards cost that have moved of late.
// Invariants, between steps:
//
//	L1  the expected load of a region that keeps its shards is the one that it tells;
//	L2  a shard takes along what a shard of its former region has cost, until the load that its
//	    new region tells has grown by it.
type loads struct {
	env
	carried map[protocol.ShardID]movedLoad
}

// movedLoad is what a shard took along when it moved.
type movedLoad struct {
	cost float64 // In parts of a region of capacity 1.
	at   machine.Instant
}

// carriedFor is how long a shard counts as one that has moved: after it the load meter of its region
// has taken over nearly all.
const carriedFor = 3 * loadWindow

// moved notes what a shard takes along from a region.
func (l *loads) moved(id protocol.ShardID, from Registration) {
	if from.LoadShards > 0 {
		l.carried[id] = movedLoad{cost: costOf(from), at: l.now()}
	}
}

// forget drops what has moved long ago.
func (l *loads) forget() {
	for id, c := range l.carried { //quorate:unordered each entry by itself
		if l.now().Sub(c.at) > carriedFor {
			delete(l.carried, id)
		}
	}
}

// costOf returns what a shard of a region has cost, which has told of some.
func costOf(reg Registration) float64 {
	return useOf(reg) / (float64(reg.LoadShards) / LoadShard)
}

// useOf returns the load that a region tells, in parts of a region of capacity 1.
func useOf(reg Registration) float64 {
	capacity := min(max(reg.Capacity, 1), allocation.MaxCapacity)
	return float64(min(reg.Load, LoadFull)) / LoadFull * float64(capacity)
}

// expect sets the loads of the regions of a request to what is to be expected with the shards that
// the request lists, as parts of what each is to bear: of a region that starts slowly, of its part.
func (l *loads) expect(all []allocation.RegionState, regs []Registration) {
	l.forget()
	use, shards := 0.0, 0.0
	for _, reg := range regs {
		use += useOf(reg)
		shards += float64(reg.LoadShards) / LoadShard
	}
	mean := 0.0
	if shards > 0 {
		mean = use / shards
	}
	for i := range all {
		reg, has := regs[i], float64(len(all[i].Shards))
		told, expected := float64(reg.LoadShards)/LoadShard, useOf(reg)
		switch {
		case has >= told:
			expected += (has - told) * l.arrived(all[i].Shards, mean)
		case told > 0:
			expected *= has / told
		}
		all[i].Load = min(expected/float64(min(max(reg.Capacity, 1), allocation.MaxCapacity)), 1)
	}
}

// arrived returns what those of the shards that have moved of late cost on average, or else what is
// usual.
func (l *loads) arrived(shards []allocation.Shard, usual float64) float64 {
	sum, n := 0.0, 0
	for _, s := range shards {
		if c, known := l.carried[protocol.ShardID(s)]; known {
			sum += c.cost
			n++
		}
	}
	if n == 0 {
		return usual
	}
	return sum / float64(n)
}

// carry notes what a shard takes along from the region of a node.
func (r *regions) carry(id protocol.ShardID, from gossip.NodeID) {
	r.loads.moved(id, r.registrations[from])
}
