// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	world "github.com/quorate/quorate/simulation"
)

// Leases for the shards: a store outside of the cluster that is down at times, and the keepers of each node, which ask
// it and know by the clock of their node until when they hold what they were given.

// The times of leases.
const (
	leaseTTL     = 6 * time.Second
	leaseSure    = leaseTTL * 95 / 100 // (docs/sharding.md, "A lease counts as lost 5 % before the store can give it")
	leaseLook    = 250 * time.Millisecond
	maxLeaseDown = 12 * time.Second
)

// leaseStore gives leases. It is always right about who holds one, by the clock of the world.
type leaseStore struct {
	world *world.World
	down  time.Duration // It answers nothing before that.
	rows  map[protocol.ShardID]leaseRow
}

type leaseRow struct {
	owner leaseOwner
	until time.Duration
}

// leaseOwner is one keeper: another one for each time that a node is to host a shard.
type leaseOwner struct {
	node  gossip.NodeID
	epoch protocol.Epoch
}

// take gives a lease to an owner, if it can.
func (s *leaseStore) take(shard protocol.ShardID, o leaseOwner) bool {
	now := s.world.Now()
	if row, taken := s.rows[shard]; now < s.down || taken && row.owner != o && now < row.until {
		return false
	}
	s.rows[shard] = leaseRow{o, now + leaseTTL}
	return true
}

// give takes a lease back, if the store can be reached: otherwise it ends by itself.
func (s *leaseStore) give(shard protocol.ShardID, o leaseOwner) {
	if s.rows[shard].owner == o && s.world.Now() >= s.down {
		delete(s.rows, shard)
	}
}

// fail has the store answer nothing for a while.
func (s *leaseStore) fail(w *world.World, r *rand.Rand) {
	s.down = w.Now() + time.Duration(r.Int64N(int64(maxLeaseDown)))
	w.Log("the store of leases is down until %v", s.down)
}

// leased checks that the node of an entity that begins a message holds the lease of the shard. Its instance may have
// been started right after the node stood still, before that has heard of its loss, as without standing; it handles
// nothing.
func (l *Ledger) leased(node gossip.NodeID, e *cell.Entity, shards uint32) {
	if l.leases == nil || !l.mayHost(node) {
		return
	}
	shard := protocol.ShardOf(e.ID(), shards)
	if row := l.leases.rows[shard]; row.owner.node != node || l.world.Now() > row.until {
		l.violate("G1: %s begins a message at %s, and the lease of shard %d is with %s until %v", e.ID(), node, shard, row.owner.node, row.until)
	}
	l.counts.Leased++
}

// keepers are the leases of a node.
type keepers struct {
	cells *Cells
	all   map[protocol.ShardID]*keeper
}

type keeper struct {
	owner leaseOwner
	held  bool
	until machine.Instant
}

// take takes an effect of the control machine.
func (k *keepers) take(e machine.Effect) {
	switch e := e.(type) {
	case control.AskLease:
		k.all[e.Shard] = &keeper{owner: leaseOwner{k.cells.self, e.Epoch}}
	case control.GiveLease:
		if of := k.all[e.Shard]; of != nil && of.owner.epoch == e.Epoch {
			of.held = false
			delete(k.all, e.Shard)
		}
		k.cells.ledger.leases.give(e.Shard, leaseOwner{k.cells.self, e.Epoch})
	}
}

// look asks for what is not held, renews what is, and notices what has ended, again and again.
func (k *keepers) look() {
	store := k.cells.ledger.leases
	if store == nil {
		return
	}
	for _, s := range slices.Sorted(maps.Keys(k.all)) {
		of := k.all[s]
		if of.held && k.cells.now > of.until {
			of.held = false
			delete(k.all, s)
			k.cells.ledger.counts.LeasesLost++
			k.cells.out.Add(control.LeaseLost{Kind: k.cells.kind, Shard: s, Epoch: of.owner.epoch})
			continue
		}
		if store.take(s, of.owner) {
			of.until = k.cells.now.Add(leaseSure)
			if !of.held {
				of.held = true
				k.cells.region.Under(s, func() bool { return of.held && k.cells.now <= of.until })
				k.cells.out.Add(control.LeaseHeld{Kind: k.cells.kind, Shard: s, Epoch: of.owner.epoch})
			}
		}
	}
	k.cells.after(leaseLook, k.look)
}

// StandsStill is a node that is alone, and so loses no standing, which stands still for longer than its leases last
// while the store of leases is down. It is sent messages at the moment at which it goes on.
func StandsStill(seed uint64) (*Cluster, error) {
	o := FaultyOptions(seed)
	o.Nodes, o.Leases = 1, true
	c := New(o)
	for round := range 4 {
		at := 20*time.Second + time.Duration(round)*25*time.Second
		c.World.At(at, func() {
			a := c.World.Nodes()[0].ID().Address
			c.Ledger.leases.down = c.World.Now() + maxLeaseDown
			c.World.Freeze(a, leaseTTL+time.Duration(seed%5)*time.Second)
		})
	}
	return c, c.World.Run(130 * time.Second)
}
