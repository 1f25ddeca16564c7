// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/recall"
	"github.com/quorate/quorate/sharding/internal/runtime"
)

// Entities that are remembered: an archive, which stands for a store, with calls that are late, lost, done
// without an answer, or done long after it; and the laws, checked against what the archive has and what the
// cells run, not against what the desk believes:
//
//   - what was acknowledged as remembered, by a node that may host, is there when the next owner reads the
//     set; what was acknowledged as forgotten is not, and is not started without a message;
//   - none is forgotten that has not asked to be stopped;
//   - with First no message begins before the archive has its entity;
//   - in the end, those run that the archive has, and no others.

// Remembered says whether entities are remembered, and how.
type Remembered struct {
	On    bool
	First bool // As [cell.Config.RememberFirst].
	Rate  int  // As in [recall.Config].
}

// archive is the store of remembered entities of a world.
type archive struct {
	ledger *Ledger
	rand   *rand.Rand
	cfg    Remembered
	sets   []shelfOf                // By shard.
	surely map[string]bool          // What was acknowledged of an entity, while nothing else was asked for since.
	begun  map[string]int           // How often an entity was started for a message.
	asked  map[string]time.Duration // Until when an entity may be forgotten: for ever since it has asked to be stopped, until the moment at which it is started again.
	last   uint64                   // The last owner of any set.
	downs  time.Duration            // Until when the archive is down at times.
}

// shelfOf is what the archive has of a shard.
type shelfOf struct {
	epoch protocol.Epoch
	owner uint64 // The number of the present owner.
	ids   map[string]bool
}

// Archived counts what became of the calls of an archive.
type Archived struct {
	Opens, Changes, Failed, Fenced, Recalled int
}

func newArchive(l *Ledger, seed uint64, cfg Remembered, shards uint32) *archive {
	return &archive{
		ledger: l, rand: rand.New(rand.NewPCG(seed, 91)), cfg: cfg, sets: make([]shelfOf, shards), //nolint:gosec // Simulation, not secrets.
		surely: make(map[string]bool), begun: make(map[string]int), asked: make(map[string]time.Duration), downs: 100 * time.Second,
	}
}

const (
	archiveSoon = 30 * time.Millisecond // What a call takes at most mostly.
	archiveLate = 3 * time.Second       // What it takes at most now and then.
	archiveWait = time.Second           // How long a node waits for an answer.
	archiveTerm = 20 * time.Second      // In one of four of these the archive is down.
)

var errArchive = errors.New("the archive does not answer")

// desk is how the desks of a world work.
func (a *archive) desk(shards uint32) recall.Config {
	return recall.Config{
		Rate: a.cfg.Rate, Calls: 4, Batch: 5, First: a.cfg.First, Limit: 5 * time.Second,
		RetryMin: 100 * time.Millisecond, RetryMax: 2 * time.Second,
		Fault: func(shard protocol.ShardID, id string) string {
			if protocol.ShardOf(id, shards) != shard {
				return "of another shard"
			}
			return ""
		},
	}
}

// fate draws when a call takes effect, and whether its node hears of that. Without an effect the time is zero.
func (a *archive) fate() (effect time.Duration, heard bool) {
	now := a.ledger.world.Now()
	if now < a.downs && now/archiveTerm%4 == 3 {
		return 0, false
	}
	soon := 1 + time.Duration(a.rand.Int64N(int64(archiveSoon)))
	switch a.rand.IntN(20) {
	case 0:
		return 0, false
	case 1:
		return soon, false
	case 2:
		return 1 + time.Duration(a.rand.Int64N(int64(archiveLate))), false
	default:
		return soon, true
	}
}

// shelf is the way of a node to the archive.
type shelf struct {
	cells   *Cells
	archive *archive
	owners  map[protocol.ShardID]uint64 // The last owner of each set that this node was told of.
}

var _ runtime.Shelf = (*shelf)(nil)

// Open implements [runtime.Shelf].
func (s *shelf) Open(o recall.Open) {
	a := s.archive
	a.last++
	owner, answer := a.last, recall.Opened{Shard: o.Shard, Session: o.Session, Err: errArchive}
	s.call(func() {
		set := &a.sets[o.Shard]
		answer.Err = nil
		if answer.Fenced = o.Epoch.Less(set.epoch) || o.Epoch == set.epoch && owner < set.owner; answer.Fenced {
			answer.Err = errors.New("a later owner has the set")
			return
		}
		a.compare(s.cells.self, o.Shard)
		set.epoch, set.owner = o.Epoch, owner
		answer.IDs = slices.Sorted(maps.Keys(set.ids))
	}, func() {
		if answer.Err == nil {
			s.owners[o.Shard] = owner
		}
		a.told(answer.Err, answer.Fenced, &a.ledger.counts.Archived.Opens)
		s.cells.region.Remembered(answer)
	}, func() { s.cells.region.Remembered(recall.Opened{Shard: o.Shard, Session: o.Session, Err: errArchive}) })
}

// Change implements [runtime.Shelf].
func (s *shelf) Change(c recall.Change) {
	a, owner, begun := s.archive, s.owners[c.Shard], map[string]int{}
	for _, id := range slices.Concat(c.Remember, c.Forget) {
		delete(a.surely, id)
		begun[id] = a.begun[id]
	}
	for _, id := range c.Forget { // With First those are forgotten too that are given up.
		if until, asked := a.asked[id]; !a.cfg.First && (!asked || a.ledger.world.Now() > until) {
			a.ledger.violate("I28: %s has %s forgotten, which has not asked for it", s.cells.self, id)
		}
	}
	answer := recall.Changed{Shard: c.Shard, Session: c.Session, Err: errArchive}
	s.call(func() {
		set := &a.sets[c.Shard]
		answer.Err = nil
		if answer.Fenced = set.owner != owner; answer.Fenced {
			answer.Err = errors.New("a later owner has the set")
			return
		}
		if set.ids == nil {
			set.ids = make(map[string]bool)
		}
		for _, id := range c.Remember {
			set.ids[id] = true
		}
		for _, id := range c.Forget {
			delete(set.ids, id)
		}
	}, func() {
		a.told(answer.Err, answer.Fenced, &a.ledger.counts.Archived.Changes)
		if answer.Err == nil && a.ledger.mayHost(s.cells.self) && s.cells.region.Slot(c.Shard).Info().Hosting {
			for id, n := range begun {
				if remembered := slices.Contains(c.Remember, id); remembered || n == a.begun[id] {
					a.surely[id] = remembered
				}
			}
		}
		s.cells.region.Remembered(answer)
	}, func() { s.cells.region.Remembered(recall.Changed{Shard: c.Shard, Session: c.Session, Err: errArchive}) })
}

// call makes a call: its effect comes to the archive whatever becomes of the node.
func (s *shelf) call(effect, heard, unheard func()) {
	at, hears := s.archive.fate()
	done := false
	if at > 0 {
		s.archive.ledger.world.After(at, func() {
			effect()
			done = true
		})
	}
	if hears {
		var look func() // The clock of the node may be fast.
		look = func() {
			if done {
				heard()
			} else {
				s.cells.after(time.Millisecond, look)
			}
		}
		s.cells.after(at, look)
		return
	}
	s.cells.after(archiveWait, func() {
		s.archive.ledger.counts.Archived.Failed++
		unheard()
	})
}

func (a *archive) told(err error, fenced bool, done *int) {
	switch {
	case fenced:
		a.ledger.counts.Archived.Fenced++
	case err != nil:
		a.ledger.counts.Archived.Failed++
	default:
		*done++
	}
}

// compare checks, when an owner reads the set of a shard, what was acknowledged.
func (a *archive) compare(node gossip.NodeID, shard protocol.ShardID) {
	for _, id := range slices.Sorted(maps.Keys(a.surely)) {
		if protocol.ShardOf(id, uint32(len(a.sets))) == shard && a.surely[id] != a.sets[shard].ids[id] { //nolint:gosec // A few shards.
			a.ledger.violate("I28: %s reads that %s is remembered: %t, the contrary was acknowledged", node, id, !a.surely[id])
		}
	}
}

// starts notes that an entity is to be started, and checks that one without a message was not forgotten.
func (a *archive) starts(node gossip.NodeID, e *cell.Entity) {
	if !a.cfg.On {
		return
	}
	if _, asked := a.asked[e.ID()]; asked {
		a.asked[e.ID()] = a.ledger.world.Now() // What is to be forgotten may be on its way at this moment.
	}
	if e.Waiting() > 0 {
		a.begun[e.ID()]++
		if known, there := a.surely[e.ID()]; there && !known {
			delete(a.surely, e.ID())
		}
		return
	}
	a.ledger.counts.Archived.Recalled++
	if known, there := a.surely[e.ID()]; there && !known {
		a.ledger.violate("I28: %s starts %s without a message, which is forgotten", node, e.ID())
	}
}

// asks notes that an entity has asked to be stopped for good.
func (a *archive) asks(id string) { a.asked[id] = math.MaxInt64 }

// begins checks that the archive has an entity whose message begins.
func (a *archive) begins(node gossip.NodeID, shard protocol.ShardID, e *cell.Entity) {
	if a.cfg.On && a.cfg.First && a.ledger.mayHost(node) && !a.sets[shard].ids[e.ID()] {
		a.ledger.violate("I28: a message to %s begins at %s before the entity is remembered", e.ID(), node)
	}
}

// recalled reports an entity that should run without a message, and does not, or one that runs and is not
// remembered.
func recalled(c *Cluster) error {
	a := c.Ledger.archive
	if !a.cfg.On {
		return nil
	}
	homes := Control(c.World.Nodes()[0]).Inspect(KindName).Homes
	for _, h := range homes {
		if err := a.recalled(c.Ledger.nodes[h.Node].region, h); err != nil {
			return err
		}
	}
	return nil
}

func (a *archive) recalled(region *runtime.Region, h control.Home) error {
	if st, _ := region.Remembers(h.Shard); !st.Read || st.Starting > 0 || st.Writing > 0 {
		return fmt.Errorf("shard %d at its home %s has something to read, to start or to write: %+v", h.Shard, h.Node, st)
	}
	ids := maps.Clone(a.sets[h.Shard].ids)
	var wrong error
	region.Slot(h.Shard).Do(func(in *cell.Cell) {
		for e := range in.Entities() {
			state := e.Info().State
			switch {
			case !ids[e.ID()] && e.Live():
				wrong = fmt.Errorf("%s runs at %s and is not remembered", e.ID(), h.Node)
			case ids[e.ID()] && (state == "idle" || state == "busy"):
				delete(ids, e.ID())
			}
		}
	})
	if wrong == nil && len(ids) > 0 {
		wrong = fmt.Errorf("%v are remembered, and do not run at %s", slices.Sorted(maps.Keys(ids)), h.Node)
	}
	return wrong
}
