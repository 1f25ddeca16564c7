// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Store is a storage outside of the cluster, as users have one behind their entities. An
// instance claims the row of its entity when it starts, and writes to it at each message,
// with its epoch; writes with an epoch below the row's are refused. A write takes its time,
// sometimes seconds, so that it may land when its node is frozen, dead or replaced.
//
// Two things must hold, whatever strategy decides who survives:
//
//   - what is accepted is in order: for each origin and entity the messages in the order in
//     which they were accepted by their origin, each once;
//   - no live owner is refused for good: a node that may host, and by the map is the home,
//     does not stay behind an epoch that somebody had before, in whichever cluster (docs/sharding.md, "The epoch of an
//     entity's home only grows.").
type Store struct {
	ledger *Ledger
	rand   *rand.Rand
	// Lax has writes with lower epochs accepted, to see that the checks find it.
	Lax bool

	rows   map[string]*row
	lands  map[writer]time.Duration // When the last write does: the instances of a node wait for those before.
	counts Writes
}

// Writes sum up what a store was asked.
type Writes struct{ Claims, Accepted, Refused int }

// writer is a node that writes to an entity.
type writer struct {
	node   gossip.NodeID
	entity string
}

// row is what the store has of an entity.
type row struct {
	epoch   protocol.Epoch
	places  map[gossip.NodeID]uint64 // The last place of each origin.
	refused map[gossip.NodeID]time.Duration
}

const (
	// landsSoon and landsLate bound how long a write takes; one of ten takes long.
	landsSoon = 5 * time.Millisecond
	landsLate = 3 * time.Second
	// refusedFor is how long an owner may be refused that may host (docs/state.md, "A node that may host again is
	// refused for at most 30 s"): for as long as the others take to agree on who is.
	refusedFor = 30 * time.Second
)

func newStore(l *Ledger, seed uint64) *Store {
	return &Store{
		ledger: l, rand: rand.New(rand.NewPCG(seed, 55)),
		rows: make(map[string]*row), lands: make(map[writer]time.Duration),
	}
}

func (s *Store) row(entity string) *row {
	r := s.rows[entity]
	if r == nil {
		r = &row{places: make(map[gossip.NodeID]uint64), refused: make(map[gossip.NodeID]time.Duration)}
		s.rows[entity] = r
	}
	return r
}

// claim makes the row of an entity that of an instance that starts.
func (s *Store) claim(node gossip.NodeID, e *cell.Entity) {
	s.counts.Claims++
	s.admit(node, e.ID(), e.Epoch())
}

// write sends a write of an instance, for a message, to the store.
func (s *Store) write(node gossip.NodeID, e *cell.Entity, p path, place uint64) {
	most := landsSoon
	if s.rand.IntN(10) == 0 {
		most = landsLate
	}
	now := s.ledger.world.Now()
	entity, epoch := e.ID(), e.Epoch()
	at := max(s.lands[writer{node, entity}], now+time.Duration(s.rand.Int64N(int64(most))))
	s.lands[writer{node, entity}] = at
	s.ledger.world.After(at-now, func() { s.arrive(node, entity, epoch, p.origin, place) })
}

// arrive makes a write that has come to the store.
func (s *Store) arrive(node gossip.NodeID, entity string, epoch protocol.Epoch, origin gossip.NodeID, place uint64) {
	if !s.admit(node, entity, epoch) {
		s.counts.Refused++
		return
	}
	s.counts.Accepted++
	r := s.row(entity)
	if last := r.places[origin]; place <= last {
		s.ledger.violate("I20: the store accepts message %d of %s to %s, written by %s under epoch %s, after message %d",
			place, origin, entity, node, epoch, last)
	}
	r.places[origin] = max(r.places[origin], place)
}

// admit compares epochs. It follows for how long an owner is refused that may host.
func (s *Store) admit(node gossip.NodeID, entity string, epoch protocol.Epoch) bool {
	r := s.row(entity)
	if !epoch.Less(r.epoch) || s.Lax {
		if r.epoch.Less(epoch) {
			r.epoch = epoch
		}
		clear(r.refused)
		return true
	}
	since, before := r.refused[node]
	switch {
	case !s.ledger.mayHost(node):
		delete(r.refused, node)
	case !before:
		r.refused[node] = s.ledger.world.Now()
	case s.ledger.world.Now()-since > refusedFor:
		s.ledger.violate("I1: %s, which may host, is refused as the owner of %s under epoch %s since %v: the store has seen %s",
			node, entity, epoch, since, r.epoch)
	}
	return false
}

// behind looks for an entity whose home, as all agree in the end, the store would refuse.
func (s *Store) behind(homes []control.Home, in protocol.Layout) (entity string, home control.Home, seen protocol.Epoch) {
	for id, r := range s.rows {
		shard := in.ShardOf(protocol.HashOf(id)).Index()
		if int(shard) >= len(homes) {
			continue // The shard is not in use.
		}
		h := homes[shard]
		if h.Epoch.Less(r.epoch) && (entity == "" || id < entity) {
			entity, home, seen = id, h, r.epoch
		}
	}
	return entity, home, seen
}
