// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	world "github.com/quorate/quorate/simulation"
)

// disk is the store at an address. It outlives the nodes there. A write that was under way when the node crashed may
// have happened or not.
type disk struct {
	id       protocol.ReplicaID
	starts   int
	old      bool // It was put back to an older state once.
	now      content
	before   content // What it held before the last write.
	answered bool    // The last write was answered.
}

// content is what a store holds. It is replaced, never changed.
type content struct {
	meta    protocol.Meta
	entries map[string]table.Entry
}

// disk returns the disk at an address, a new and empty one if there is none.
func (c *Cluster) disk(a gossip.Address) *disk {
	d := c.disks[a]
	if d == nil {
		d = &disk{id: protocol.ReplicaID(c.rand.Uint64() | 1), answered: true}
		c.disks[a] = d
	}
	return d
}

// LoseDisk removes the disk at an address: the next replica there is another one.
func (c *Cluster) LoseDisk(a gossip.Address) { delete(c.disks, a) }

// load fills the table of a starting node.
func (d *disk) load(t *table.Table) protocol.Meta {
	for _, key := range slices.Sorted(maps.Keys(d.now.entries)) {
		if _, err := t.Join(d.now.entries[key]); err != nil {
			panic(fmt.Sprintf("an entry that was stored cannot be loaded: %v", err))
		}
	}
	t.Changed(1 << 20)
	return d.now.meta
}

// ended decides what became of the write that was under way.
func (d *disk) ended(r *rand.Rand, crashed bool) {
	if crashed && !d.answered && r.IntN(2) == 0 {
		d.now = d.before
	}
	d.answered = true
}

// store answers a call to the store port: it writes, or gives the store another id.
func (c *Cluster) store(n *world.Node, request any) (any, error) {
	d := c.disk(n.ID().Address)
	if renew, ok := request.(protocol.RenewID); ok {
		if d.id == renew.Of {
			d.id = protocol.ReplicaID(c.rand.Uint64() | 1)
		}
		return d.id, nil
	}
	d.write(request.(protocol.WriteBatch))
	return nil, nil
}

// write writes a batch.
func (d *disk) write(p protocol.WriteBatch) {
	next := content{meta: p.Meta, entries: map[string]table.Entry{}}
	if !p.Wipe {
		maps.Copy(next.entries, d.now.entries)
	}
	for _, e := range p.Entries {
		next.entries[e.Key] = e
	}
	for _, key := range p.Drop {
		delete(next.entries, key)
	}
	d.before, d.now, d.answered = d.now, next, false
}
