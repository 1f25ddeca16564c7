// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Region is one node's part of a kind: a slot for each of its shards.
type Region struct {
	node  *Node
	name  string
	ports KindPorts
	slots []Slot

	limiter atomic.Pointer[limiter] // Bounds the instances; nil: nothing does.
}

// NewRegion adds a kind to the node. Its cells know no home yet. The fields Kind, Self and
// Shard of cfg are not used, nor is Chunk. Permanent has the entities of all shards.
func (n *Node) NewRegion(kind string, shards uint32, cfg cell.Config, p KindPorts) *Region {
	r := &Region{node: n, name: kind, ports: p, slots: make([]Slot, shards)}
	cfg.Kind, cfg.Self, cfg.Chunk = kind, n.Ports.Self, n.chunks.take
	permanent := map[protocol.ShardID][]string{}
	for _, id := range cfg.Permanent {
		shard := protocol.ShardOf(id, shards)
		permanent[shard] = append(permanent[shard], id)
	}
	for i := range r.slots {
		cfg.Shard = protocol.ShardID(i)
		cfg.Permanent = permanent[cfg.Shard]
		r.slots[i].region, r.slots[i].shard, r.slots[i].cell = r, cfg.Shard, cell.New(cfg)
	}
	n.add(r)
	return r
}

// Shards returns the number of shards.
func (r *Region) Shards() int { return len(r.slots) }

// Slot returns the slot of a shard.
func (r *Region) Slot(shard protocol.ShardID) *Slot { return &r.slots[shard] }

// SlotOf returns the slot of an entity's shard.
func (r *Region) SlotOf(entity string) *Slot {
	return &r.slots[protocol.ShardOf(entity, uint32(len(r.slots)))]
}

// EachSlot calls f for every slot.
func (r *Region) EachSlot(f func(*Slot)) {
	for i := range r.slots {
		f(&r.slots[i])
	}
}

// Busy returns how long entities of this node have been handling messages since the kind began,
// all together: what two of them do at one time counts twice. It does not count what is handled
// at present, nor starts and stops.
func (r *Region) Busy() (all time.Duration) {
	r.EachSlot(func(sl *Slot) {
		sl.mu.Lock()
		all += sl.busy
		sl.mu.Unlock()
	})
	return all
}

// Reload gives all cells other times, see [cell.Upkeep.Reload].
func (r *Region) Reload(passivateAfter, stuckAfter time.Duration) {
	r.EachSlot(func(sl *Slot) {
		sl.Do(func(c *cell.Cell) { c.Upkeep().Reload(passivateAfter, stuckAfter) })
	})
}

const (
	// sweepChunk is how many entities are looked at in one go with a slot in hand: messages
	// to the shard wait meanwhile.
	sweepChunk = 128
	// sweepIntervalMax bounds the sweep interval, so that failures are forgotten in time
	// whatever is configured.
	sweepIntervalMax = 15 * time.Second
)

// SweepInterval returns the interval at which a region is swept, so that an action that is
// due after one of the given times is late by a quarter of that time at most.
func SweepInterval(times ...time.Duration) time.Duration {
	every := sweepIntervalMax
	for _, d := range times {
		if d > 0 {
			every = min(every, max(d/4, time.Millisecond))
		}
	}
	return every
}

// Sweep looks at all entities, a few at a time with a slot in hand, until done reports true.
func (r *Region) Sweep(done func() bool) {
	for i := range r.slots {
		for sl, over := &r.slots[i], false; !over; {
			if done() {
				return
			}
			over = sl.sweep()
		}
	}
}
