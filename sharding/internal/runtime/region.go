// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Region is one node's part of a kind: a slot for each of its shards.
type Region struct {
	node    *Node
	name    string
	ports   KindPorts
	layouts atomic.Pointer[layoutSet]

	changing sync.Mutex  // Held while the layouts, or the settings of the cells, change.
	cells    cell.Config // The settings of the cells. Guarded by changing.
	past     pastCounts  // What slots have done that are no more. Guarded by changing.

	limiter   atomic.Pointer[limiter] // Bounds the instances; nil: nothing does.
	remembers *rememberPort           // Remembers the entities; nil: nothing does. Set before the first cell.
}

// NewRegion adds a kind to the node. Its cells know no home yet. The fields Kind, Self and
// Shard of cfg are not used, nor are Chunk and Rememberer. Permanent has the entities of all shards.
func (n *Node) NewRegion(kind string, shards uint32, cfg cell.Config, p KindPorts) *Region {
	cfg.Kind, cfg.Self, cfg.Chunk = kind, n.Ports.Self, n.chunks.take
	r := &Region{node: n, name: kind, ports: p, cells: cfg}
	first := protocol.Layout{Shards: shards}
	if p.Store != nil {
		r.remembers = newRemembers(r, p.Remembering, first, p.Store)
		r.cells.Rememberer = r.remembers
	}
	r.layouts.Store(newLayoutSet(nil, []*layout{r.makeLayout(first, nil)}))
	n.add(r)
	return r
}

// Shards returns the number of shards, of the last layout if there are several.
func (r *Region) Shards() int {
	in := r.layouts.Load().inForce
	return len(in[len(in)-1].slots)
}

// Slot returns the slot of a shard; nil if there is no such shard.
func (r *Region) Slot(shard protocol.ShardID) *Slot { return r.layouts.Load().slot(shard) }

// SlotOf returns the slot of an entity's shard.
func (r *Region) SlotOf(entity string) *Slot { return r.layouts.Load().of(protocol.HashOf(entity), 0) }

// Away reports whether the last message to a slot went to another node, a hint for the next one.
func (r *Region) Away(sl *Slot) bool { return sl.remoteHint.Load() }

// EachSlot calls f for every slot.
func (r *Region) EachSlot(f func(*Slot)) {
	for _, sl := range r.layouts.Load().slots {
		f(sl)
	}
}

// Busy returns how long entities of this node have been handling messages since the kind began,
// all together: what two of them do at one time counts twice. It does not count what is handled
// at present, nor starts and stops.
func (r *Region) Busy() (all time.Duration) {
	r.changing.Lock()
	defer r.changing.Unlock()
	all = r.past.busy
	r.EachSlot(func(sl *Slot) {
		sl.mu.Lock()
		all += sl.busy
		sl.mu.Unlock()
	})
	return all
}

// Reload gives all cells other times, see [cell.Maintenance.Reload].
func (r *Region) Reload(passivateAfter, stuckAfter time.Duration) {
	r.changing.Lock()
	defer r.changing.Unlock()
	r.cells.PassivateAfter, r.cells.StuckAfter = passivateAfter, stuckAfter
	r.EachSlot(func(sl *Slot) {
		sl.Do(func(c *cell.Cell) { c.Maintenance().Reload(passivateAfter, stuckAfter) })
	})
}

const (
	// sweepChunk is how many entities are looked at in one go with mu of a slot held: messages
	// to the shard wait meanwhile.
	sweepChunk = 128
	// maxSweepInterval bounds the sweep interval, so that failures are forgotten in time
	// whatever is configured.
	maxSweepInterval = 15 * time.Second
)

// SweepInterval returns the interval at which a region is swept, so that an action that is
// due after one of the given times is late by a quarter of that time at most.
func SweepInterval(times ...time.Duration) time.Duration {
	every := maxSweepInterval
	for _, d := range times {
		if d > 0 {
			every = min(every, max(d/4, time.Millisecond))
		}
	}
	return every
}

// Sweep looks at all entities, a few at a time with mu of a slot held, until done reports true.
func (r *Region) Sweep(done func() bool) {
	defer r.forget()
	for _, sl := range r.layouts.Load().slots {
		for over := false; !over; {
			if done() {
				return
			}
			over = sl.sweep()
		}
	}
}
