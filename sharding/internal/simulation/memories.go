// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
)

// Entities whose memory moves with their shard. The memory of a stub is its number among the instances of its entity,
// and how many messages it and those before it have processed. So the ledger knows which instance had the memory that
// another one gets, and whether it is what that one had in the end. First come the instances and the ledger, then nodes
// of an earlier release, then the memory on a node.

// Snapshots says how the snapshots of the entities of a world behave. The zero value: entities make none.
type Snapshots struct {
	On bool
	// Fail is the chance that a snapshot fails or is too large, and that an instance cannot be
	// restored.
	Fail float64
	// Slow is the chance that a snapshot takes SlowFor.
	Slow    float64
	SlowFor time.Duration
	// Older has nodes of earlier releases, see versionOf, not know of snapshots.
	Older bool
	// Whole says that nothing is wrong in the world: what an instance gave before a move must be
	// there after it.
	Whole bool
}

const (
	// maxSnapshot is the size of the largest snapshot that is not refused, and maxShard what those of a
	// shard may have together: room for a few.
	maxSnapshot = 64
	maxShard    = 800
	// snapshotFor is how long an idle entity, and the memory of one, is kept in a world with memory.
	snapshotFor = 4 * time.Second
)

// instance is what the ledger knows of one instance of an entity.
type instance struct {
	number    uint64 // Among the instances of the entity, from 1, in the order in which they start.
	processed uint64 // By it and by those whose memory it has.
	began     bool   // It has begun a message, for which its node has had standing.
	gave      bool   // It gave its memory, which nobody has had, nor lost by what is known.
}

// memories is the part of a ledger that follows the memory of entities.
type memories struct {
	ledger    *Ledger
	snapshots Snapshots
	instances map[string][]*instance // By entity, in the order of their numbers.
	counts    Memories
}

// Memories sum up what became of the memory of entities.
type Memories struct{ Given, Restored, Lost int }

// born notes an instance that starts.
func (m *memories) born(entity string) *instance {
	i := &instance{number: uint64(len(m.instances[entity]) + 1)}
	m.instances[entity] = append(m.instances[entity], i)
	return i
}

// before returns the instance that started before another one; nil for none.
func (m *memories) before(entity string, i *instance) *instance {
	if i.number < 2 {
		return nil
	}
	return m.instances[entity][i.number-2]
}

// bytes is the memory of an instance as a snapshot.
func (i *instance) bytes() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, i.number), i.processed)
}

// restored checks that an instance gets the memory of the latest one before it that has processed
// anything, as that had it in the end, and before its own first message. An instance on a node that
// may not host begins no message, whatever it remembers.
func (m *memories) restored(node gossip.NodeID, entity string, i *instance, snapshot []byte) {
	m.counts.Restored++
	number, processed := binary.BigEndian.Uint64(snapshot), binary.BigEndian.Uint64(snapshot[8:])
	if number == 0 || number >= i.number {
		m.ledger.violate("I1: instance %d of entity %s, at %s, has a memory that nobody gave", i.number, entity, node)
		return
	}
	giver := m.instances[entity][number-1]
	defer func() { giver.gave, i.processed = false, processed }()
	if !m.ledger.mayHost(node) {
		return
	}
	for _, other := range m.instances[entity][number : i.number-1] {
		if other.began {
			m.ledger.violate("I1: instance %d of entity %s, at %s, has the memory of instance %d, after which instance %d processed messages",
				i.number, entity, node, number, other.number)
			return
		}
	}
	switch {
	case !giver.gave:
		m.ledger.violate("I1: instance %d of entity %s, at %s, has the memory of instance %d, which another one had", i.number, entity, node, number)
	case processed != giver.processed:
		m.ledger.violate("I1: instance %d of entity %s, at %s, has a memory of %d messages, and instance %d had one of %d",
			i.number, entity, node, processed, number, giver.processed)
	case i.began:
		m.ledger.violate("I1: instance %d of entity %s, at %s, is restored after it has begun a message", i.number, entity, node)
	}
}

// empty notes that an instance starts without memory, and checks that there was none where nothing is wrong
// (docs/sharding.md, "The memory is lost after a crash of the node, or of the coordinator or the new home in the
// middle of the move.").
func (m *memories) empty(node gossip.NodeID, entity string, i *instance) {
	before := m.before(entity, i)
	if before == nil {
		return
	}
	if m.snapshots.Whole && before.gave {
		m.ledger.violate("I21: instance %d of entity %s starts at %s without the memory that the one before it gave", i.number, entity, node)
	}
	before.gave = false
}

// forgotten notes that the memory of an entity is said to be lost (docs/sharding.md, "After `passivate-after` without
// a message the snapshot is dropped").
func (m *memories) forgotten(f protocol.MemoryLost) {
	m.counts.Lost++
	if m.snapshots.Whole && f.Loss != protocol.LossIdle {
		m.ledger.violate("I21: the memory of entity %s is lost in a world where nothing is wrong: %s", f.Entity, f.Loss)
	}
	if all := m.instances[f.Entity]; len(all) > 0 {
		all[len(all)-1].gave = false
	}
}

// forgets reports whether a node is of a release that does not know of snapshots (docs/sharding.md, "A node of a
// version without snapshots, as old home, coordinator or new home, forwards none").
func (h Snapshots) forgets(node gossip.NodeID) bool {
	return h.Older && versionOf(node) < protocol.VersionReplies
}

// gives reports whether the entities of a node can give a snapshot.
func (h Snapshots) gives(node gossip.NodeID) bool { return h.On && !h.forgets(node) }

// withoutMemory returns a message of a coordinator or a region as such a release reads it.
func withoutMemory(message any) any {
	switch m := message.(type) {
	case control.Host:
		m.Shards = slices.Clone(m.Shards)
		for i := range m.Shards {
			m.Shards[i].Snapshots = nil
		}
		return m
	case control.ShardsStopped:
		m.Shards = slices.Clone(m.Shards)
		for i := range m.Shards {
			m.Shards[i].Snapshots = nil
		}
		return m
	default:
		return message
	}
}

// nodeMemory is the memory of the instances of a node.
type nodeMemory struct {
	cells *Cells
	lives map[*cell.Entity]*instance // The instances, by their records; none in a world without memory.
}

// start notes an instance that starts: what it processes counts in its memory.
func (r *nodeMemory) start(e *cell.Entity) {
	if r.cells.behaviour.Snapshots.On {
		r.lives[e] = r.cells.ledger.memories.born(e.ID())
	}
}

// begin notes that an instance begins a message.
func (r *nodeMemory) begin(e *cell.Entity) {
	if i := r.lives[e]; i != nil {
		i.processed++
		i.began = true
	}
}

// restore restores an instance that starts, if there is a snapshot and it can be.
func (r *nodeMemory) restore(j *runtime.Job) {
	c, m, e := r.cells, &r.cells.ledger.memories, j.Entity()
	i := r.lives[e]
	if i == nil {
		return
	}
	snapshot := j.Snapshot()
	if snapshot == nil || c.rand.Float64() < m.snapshots.Fail {
		m.empty(c.self, e.ID(), i)
		return
	}
	m.restored(c.self, e.ID(), i, snapshot)
	j.Restored()
}

// takes draws how long an entity takes for its snapshot.
func (r *nodeMemory) takes() time.Duration {
	c := r.cells
	if how := c.behaviour.Snapshots; c.rand.Float64() < how.Slow {
		return c.drawn(how.SlowFor)
	}
	return c.drawn(c.behaviour.Stop)
}

// give has an entity give its snapshot, or fail.
func (r *nodeMemory) give(j *runtime.Job) {
	c, m, e := r.cells, &r.cells.ledger.memories, j.Entity()
	i := r.lives[e]
	delete(r.lives, e)
	delete(c.behind, e)
	switch {
	case c.rand.Float64() < m.snapshots.Fail:
		j.Gave(nil, protocol.LossFailed)
	case c.rand.Float64() < m.snapshots.Fail:
		j.Gave(make([]byte, maxSnapshot+1), protocol.LossNone)
	default:
		m.counts.Given++
		i.gave = !e.Ended()
		j.Gave(i.bytes(), protocol.LossNone)
	}
}

// Unpacked reports what is missing until no node has the memory of an entity in hand whose shard is
// elsewhere.
func (c *Cluster) Unpacked() error {
	for _, n := range c.World.Nodes() {
		if i := Control(n).Inspect(KindName); i.HeldSnapshots > 0 {
			return fmt.Errorf("%s has the memory of entities of %d shards on their way", n.ID(), i.HeldSnapshots)
		}
		region, left := c.Ledger.nodes[n.ID()].region, 0
		region.EachSlot(func(sl *runtime.Slot) {
			sl.Do(func(in *cell.Cell) {
				if !in.Info().Hosting && in.Handoff().Kept() > 0 {
					left++
				}
			})
		})
		if left > 0 {
			return fmt.Errorf("%s has the memory of entities of %d shards that live elsewhere", n.ID(), left)
		}
	}
	return nil
}
