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
	"github.com/quorate/quorate/sharding/internal/remembering"
	"github.com/quorate/quorate/sharding/internal/runtime"
)

// Entities that are remembered: an archive, which stands for a store, with calls that are late, lost, done
// without an answer, or done long after it; and the laws, checked against what the archive has and what the
// cells run, not against what the remembering machine believes:
//
//   - what was acknowledged as remembered, by a node that may host, is in some set whenever an owner reads one;
//     what was acknowledged as forgotten is in none, and is not started without a message;
//   - none is taken out of a set that has not asked to be stopped, unless another set has it;
//   - nothing is written to the sets of a number of shards that the index does not have;
//   - with First no message begins before the archive has its entity;
//   - in the end, those run that the archive has, and no others, and the index has one number of shards.

// Remembered says whether entities are remembered, and how.
type Remembered struct {
	On    bool
	First bool // As [cell.Config.RememberFirst].
	Rate  int  // As in [remembering.Config].
}

// archive is the store of remembered entities of a world.
type archive struct {
	ledger *Ledger
	rand   *rand.Rand
	cfg    Remembered
	sets   map[remembering.Set]*archivedSet
	surely map[string]bool          // What was acknowledged of an entity, while nothing else was asked for since.
	begun  map[string]int           // How often an entity was started for a message.
	asked  map[string]time.Duration // Until when an entity may be forgotten: for ever since it has asked to be stopped, until the moment at which it is started again.
	ran    map[string]bool          // What was started since it last asked to be stopped.
	last   uint64                   // The last owner of any set.
	downs  time.Duration            // Until when the archive is down at times.
}

// archivedSet is one set of the archive.
type archivedSet struct {
	epoch protocol.Epoch
	owner uint64 // The number of the present owner.
	ids   map[string]bool
}

// ArchiveCounts count the calls of an archive by their results.
type ArchiveCounts struct {
	Opens, Changes, Failed, Fenced, Recalled int
	Given                                    int // Ids of former numbers of shards, each time they were given.
}

func newArchive(l *Ledger, seed uint64, cfg Remembered) *archive {
	return &archive{
		ledger: l, rand: rand.New(rand.NewPCG(seed, 91)), cfg: cfg, sets: make(map[remembering.Set]*archivedSet),
		surely: make(map[string]bool), begun: make(map[string]int), asked: make(map[string]time.Duration), ran: make(map[string]bool),
		downs: 100 * time.Second,
	}
}

const (
	archiveSoon = 30 * time.Millisecond // What a call takes at most mostly.
	archiveLate = 3 * time.Second       // What it takes at most now and then.
	archiveWait = time.Second           // How long a node waits for an answer.
	archiveTerm = 20 * time.Second      // In one of four of these the archive is down.

	// maxTakeover bounds how long a set of a former number of shards may be on its way to forget an entity that runs
	// again, and is not remembered anew yet (docs/sharding.md, "the entity is remembered some milliseconds later. If
	// its node is lost before that, the entity starts with its next message").
	maxTakeover = 20 * time.Second
)

var errArchive = errors.New("the archive does not answer")

// remembering returns the configuration of the machines of a world.
func (a *archive) remembering() remembering.Config {
	return remembering.Config{
		Rate: a.cfg.Rate, Calls: 4, Batch: 5, First: a.cfg.First, Timeout: 5 * time.Second,
		RetryMin: 100 * time.Millisecond, RetryMax: 2 * time.Second, Fault: func(string) string { return "" },
	}
}

// set returns a set.
func (a *archive) set(name remembering.Set) *archivedSet {
	if a.sets[name] == nil {
		a.sets[name] = &archivedSet{ids: make(map[string]bool)}
	}
	return a.sets[name]
}

// has reports whether a set has an entity, besides one of them.
func (a *archive) has(id string, besides *archivedSet) bool {
	for name, set := range a.sets { //quorate:unordered a question about all
		if !name.IsIndex() && set != besides && set.ids[id] {
			return true
		}
	}
	return false
}

// drawEffect draws when a call takes effect, and whether its node is told. Without an effect the time is zero.
func (a *archive) drawEffect() (effect time.Duration, heard bool) {
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

// storeCalls carries the calls of the store that a node makes to the archive.
type storeCalls struct {
	cells   *Cells
	archive *archive
	owners  map[remembering.Set]uint64 // The last owner of each set that this node was told of.
}

var _ runtime.StoreCalls = (*storeCalls)(nil)

// Open implements [runtime.StoreCalls].
func (s *storeCalls) Open(o remembering.Open) {
	a := s.archive
	a.last++
	owner, answer := a.last, remembering.Opened{Set: o.Set, Session: o.Session, Err: errArchive}
	s.call(func() {
		set := a.set(o.Set)
		answer.Err = nil
		if answer.Fenced = o.Epoch.Less(set.epoch) || o.Epoch == set.epoch && owner < set.owner; answer.Fenced {
			answer.Err = errors.New("a later owner has the set")
			return
		}
		a.compare(s.cells.self)
		set.epoch, set.owner = o.Epoch, owner
		answer.IDs = slices.Sorted(maps.Keys(set.ids))
	}, func() {
		if answer.Err == nil {
			s.owners[o.Set] = owner
		}
		a.told(answer.Err, answer.Fenced, &a.ledger.counts.Archived.Opens)
		s.cells.region.Remembered(answer)
	}, func() { s.cells.region.Remembered(remembering.Opened{Set: o.Set, Session: o.Session, Err: errArchive}) })
}

// Change implements [runtime.StoreCalls].
func (s *storeCalls) Change(c remembering.Change) {
	a, owner, begun := s.archive, s.owners[c.Set], map[string]int{}
	for _, id := range slices.Concat(c.Remember, c.Forget) {
		delete(a.surely, id)
		begun[id] = a.begun[id]
	}
	answer := remembering.Changed{Set: c.Set, Session: c.Session, Err: errArchive}
	s.call(func() {
		set := a.set(c.Set)
		answer.Err = nil
		if answer.Fenced = set.owner != owner; answer.Fenced {
			answer.Err = errors.New("a later owner has the set")
			return
		}
		a.write(s.cells.self, c, set)
	}, func() {
		a.told(answer.Err, answer.Fenced, &a.ledger.counts.Archived.Changes)
		if answer.Err == nil && s.serves(c.Set) {
			for id, n := range begun {
				if remembered := slices.Contains(c.Remember, id); remembered || n == a.begun[id] {
					a.surely[id] = remembered
				}
			}
		}
		s.cells.region.Remembered(answer)
	}, func() {
		s.cells.region.Remembered(remembering.Changed{Set: c.Set, Session: c.Session, Err: errArchive})
	})
}

// serves reports whether a node that may host serves the shard of a set.
func (s *storeCalls) serves(name remembering.Set) bool {
	if name.IsIndex() || !s.archive.ledger.mayHost(s.cells.self) {
		return false
	}
	for _, l := range s.cells.region.Layouts() {
		if l.Shards == name.Of {
			return s.cells.region.Slot(l.Shard(name.Number)).Info().Hosting
		}
	}
	return false
}

// write changes a set, and checks that it may be changed so.
func (a *archive) write(node gossip.NodeID, c remembering.Change, set *archivedSet) {
	if name := c.Set; !name.IsIndex() && len(c.Remember) > 0 && !a.set(remembering.Set{}).ids[fmt.Sprint(name.Of)] {
		a.ledger.violate("I28: %s writes a set of %d shards, of which the index does not tell", node, name.Of)
	}
	for _, id := range c.Remember {
		set.ids[id] = true
	}
	for _, id := range c.Forget {
		was := set.ids[id]
		delete(set.ids, id)
		switch {
		case c.Set.IsIndex():
			a.emptied(node, id)
		case was && !a.has(id, set) && !a.mayForget(id):
			a.ledger.violate("I28: %s has %s forgotten, which has not asked for it", node, id)
		}
	}
}

// mayForget reports whether an entity has asked to be stopped, and was not started since or a short time ago. With
// First those are forgotten too that are given up before they have run (docs/sharding.md, "Such an entity is
// remembered only if it was before").
func (a *archive) mayForget(id string) bool {
	until, asked := a.asked[id]
	return a.cfg.First && !a.ran[id] || asked && (until == math.MaxInt64 || a.ledger.world.Now() <= until+maxTakeover)
}

// emptied checks that nothing is left of a number of shards that is taken out of the index.
func (a *archive) emptied(node gossip.NodeID, number string) {
	for name, set := range a.sets { //quorate:unordered each entry by itself
		if fmt.Sprint(name.Of) == number && len(set.ids) > 0 {
			a.ledger.violate("I28: %s takes %s shards out of the index, of which %v has %d ids", node, number, name, len(set.ids))
		}
	}
}

// Close implements [runtime.StoreCalls].
func (s *storeCalls) Close(remembering.Close) {}

// Ask implements [runtime.StoreCalls], as do the next two.
func (s *storeCalls) Ask(t protocol.ExportRequest) {
	s.cells.out.Add(control.ImportQuestion{Kind: s.cells.kind, Take: t})
}

// Answer sends an answer to the control machine of a node.
func (s *storeCalls) Answer(g remembering.Answer) {
	s.archive.ledger.counts.Archived.Given += len(g.Given.IDs)
	s.cells.out.Add(control.ImportAnswer{Kind: s.cells.kind, To: g.To, Given: g.Given})
}

// Over tells the control machine.
func (s *storeCalls) Over(layout uint16) {
	s.cells.out.Add(control.ImportFinished{Kind: s.cells.kind, Layout: layout})
}

// call makes a call: its effect comes to the archive whatever becomes of the node.
func (s *storeCalls) call(effect, heard, unheard func()) {
	at, hears := s.archive.drawEffect()
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

// compare checks, when an owner reads a set, what was acknowledged.
func (a *archive) compare(node gossip.NodeID) {
	for _, id := range slices.Sorted(maps.Keys(a.surely)) {
		if has := a.has(id, nil); a.surely[id] != has {
			a.ledger.violate("I28: when %s reads, %s is remembered: %t, the contrary was acknowledged", node, id, has)
		}
	}
}

// starts notes that an entity is to be started, and checks that one without a message was not forgotten.
func (a *archive) starts(node gossip.NodeID, e *cell.Entity) {
	if !a.cfg.On {
		return
	}
	a.ran[e.ID()] = true
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
	// A node that stood still may start what its successor has forgotten, and has no standing to go on.
	if known, there := a.surely[e.ID()]; there && !known && a.ledger.mayHost(node) {
		a.ledger.violate("I28: %s starts %s without a message, which is forgotten", node, e.ID())
	}
}

// asks notes that an entity has asked to be stopped for good.
func (a *archive) asks(id string) {
	a.asked[id] = math.MaxInt64
	delete(a.ran, id)
}

// begins checks that the archive has an entity whose message begins.
func (a *archive) begins(node gossip.NodeID, e *cell.Entity) {
	if a.cfg.On && a.cfg.First && a.ledger.mayHost(node) && !a.has(e.ID(), nil) {
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
	var present protocol.Layout
	for _, h := range Control(c.World.Nodes()[0]).Inspect(KindName).Homes {
		region := c.Ledger.nodes[h.Node].region
		all := region.Layouts()
		if present = all[len(all)-1]; len(all) > 1 {
			return fmt.Errorf("the number of shards is being changed: %v", all)
		}
		if err := a.recalled(region, h, present); err != nil {
			return err
		}
	}
	return a.takenOver(present)
}

// takenOver reports what is left of former numbers of shards.
func (a *archive) takenOver(present protocol.Layout) error {
	if index := a.set(remembering.Set{}).ids; len(index) != 1 || !index[fmt.Sprint(present.Shards)] {
		return fmt.Errorf("the index has %v shards, with %d in force", slices.Sorted(maps.Keys(index)), present.Shards)
	}
	for name, set := range a.sets { //quorate:unordered any one
		if !name.IsIndex() && name.Of != present.Shards && len(set.ids) > 0 {
			return fmt.Errorf("the set %v of former shards has %d ids", name, len(set.ids))
		}
	}
	return nil
}

func (a *archive) recalled(region *runtime.Region, h control.Home, of protocol.Layout) error {
	if st, _ := region.Remembers(h.Shard); !st.Read || st.Starting > 0 || st.Writing > 0 {
		return fmt.Errorf("shard %d at its home %s has something to read, to start or to write: %+v", h.Shard, h.Node, st)
	}
	ids := maps.Clone(a.set(remembering.Set{Number: h.Shard.Index(), Of: of.Shards}).ids)
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
