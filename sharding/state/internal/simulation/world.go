// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/store"
	world "github.com/quorate/quorate/simulation"
)

// The world: which node hosts which record by which epoch, and the clients; nodes are in owner.go, the store in
// storage.go. First the options and the world, then homes and faults, clients, and the end of a run.

// Options say what a world is like.
type Options struct {
	Seed     uint64
	Nodes    int
	Records  int
	Duration time.Duration // For how long faults are injected.
}

// Counts are what has happened in a run, so that a test can see that it was not idle.
type Counts struct {
	Acknowledged, Refused, Fenced, Unanswered int // Changes, and why instances ended.
	Repeated                                  int // Writes that a second attempt found to be there.
	Late                                      int // Calls that took effect after nobody waited for them any more.
	Calls, Batched                            int // Calls of the store, and those with several records.
	Moves, Freezes, Crashes, Outages          int
}

// World is a world of owners over a store.
type World struct {
	*world.World

	opt     Options
	rand    *rand.Rand
	nodes   []*node
	homes   []home
	n       uint64 // The version of the map of homes.
	storage *storage
	calm    bool // The faults are over.
	asked   int  // Changes that were asked for.
	History []*History
	Counts  Counts
}

// home is the node that is to host a record. Nodes are told late.
type home struct {
	node  int
	epoch epoch.Epoch
}

// KindName is the kind of all records.
const KindName = "simulated"

// Nodes is the usual number of nodes.
const Nodes = 4

const (
	recovery = 60 * time.Second       // The time after the faults in which the rightful owners have to write.
	every    = 400 * time.Millisecond // The mean time between two operations of the client of a record.
	maxHeard = 5 * time.Second        // The longest time until a node is told that it is, or is no longer, a home.
)

// New returns a world that has not begun.
func New(opt Options, set ...func(*world.Options)) *World {
	base := world.Options{Seed: opt.Seed, Scenario: "sharding-state"}
	for _, f := range set {
		f(&base)
	}
	w := &World{World: world.New(base), opt: opt}
	w.rand = w.Source(60)
	w.storage = &storage{w: w, records: memory.New(), claimed: map[store.Key]store.Owner{}}
	for i := range opt.Nodes {
		w.nodes = append(w.nodes, newNode(w, i))
	}
	w.homes = make([]home, opt.Records)
	for r := range opt.Records {
		w.History = append(w.History, NewHistory())
		w.move(r)
		w.client(r)
	}
	w.injectFaults()
	return w
}

func key(r int) store.Key { return store.Key{Kind: KindName, ID: fmt.Sprintf("r%d", r)} }

// chance is true with a probability.
func (w *World) chance(p float64) bool { return !w.calm && w.rand.Float64() < p }

// upTo draws a time.
func (w *World) upTo(d time.Duration) time.Duration { return time.Duration(w.rand.Int64N(int64(d))) }

// move gives a record a new home. The old one and the new one are told later, each at a time of its own.
func (w *World) move(r int) {
	w.n++
	old := w.homes[r]
	h := home{w.rand.IntN(len(w.nodes)), epoch.Epoch{
		Born: 1, Term: singleton.Term{UpNumber: gossip.UpNumber(1 + w.n/10), UID: gossip.UID(1), Start: 1}, N: w.n,
	}}
	w.homes[r] = h
	w.Log("%v lives on node %d by %v", key(r), h.node, h.epoch)
	told, heard := w.upTo(maxHeard), w.upTo(maxHeard)
	w.After(told, func() { w.nodes[old.node].do(func(n *node) { n.release(r, old.epoch) }) })
	w.After(heard, func() { w.nodes[h.node].do(func(n *node) { n.host(r, h.epoch) }) })
}

// injectFaults injects faults until their time has passed.
func (w *World) injectFaults() {
	w.After(w.upTo(2*time.Second), func() {
		if w.Now() > w.opt.Duration {
			w.recover()
			return
		}
		n := w.nodes[w.rand.IntN(len(w.nodes))]
		switch w.rand.IntN(5) {
		case 0, 1:
			w.Counts.Moves++
			w.move(w.rand.IntN(len(w.homes)))
		case 2:
			w.Counts.Freezes++
			n.freeze(w.upTo(40 * time.Second))
		case 3:
			w.Counts.Crashes++
			n.crash()
		case 4:
			w.Counts.Outages++
			w.storage.takeDown(w.upTo(20 * time.Second))
		}
		w.injectFaults()
	})
}

// recover ends the faults. Calls that were delayed before still come.
func (w *World) recover() {
	w.calm = true
	w.storage.until = 0
	for _, n := range w.nodes {
		n.frozen = min(n.frozen, w.Now())
	}
}

// client makes an operation on a record, at its home or, now and then, at another node, and the next one later.
func (w *World) client(r int) {
	w.After(every/2+w.upTo(every), func() {
		to := w.homes[r].node
		if w.chance(0.3) {
			to = w.rand.IntN(len(w.nodes))
		}
		w.asked++
		op := operation{record: r, text: fmt.Sprintf("c%d", w.asked), read: w.rand.IntN(4) == 0}
		if !op.read {
			w.History[r].Ask(op.text)
		}
		w.nodes[to].do(func(n *node) { n.serve(op) })
		w.client(r)
	})
}

// Finish runs the world to its end, and compares what the store has with what clients were answered.
func (w *World) Finish() error {
	if err := w.Run(w.opt.Duration + recovery); err != nil {
		return err
	}
	before := make([]int, len(w.History))
	for r, h := range w.History {
		before[r] = h.Acknowledged()
	}
	if err := w.Run(recovery); err != nil {
		return err
	}
	for r, h := range w.History {
		if h.Acknowledged() == before[r] {
			w.Fail(fmt.Errorf("S7: %v lives on node %d by %v, which has written nothing for %v",
				key(r), w.homes[r].node, w.homes[r].epoch, recovery))
		}
		final, err := Content(w.storage.read(key(r)))
		if err == nil {
			err = h.Check(final)
		}
		if err != nil {
			w.Fail(fmt.Errorf("%v: %w", key(r), err))
		}
	}
	return w.Failure()
}

// Run runs a world of the usual size with a seed.
func Run(seed uint64, nodes int, set ...func(*world.Options)) (*World, error) {
	w := New(Options{Seed: seed, Nodes: nodes, Records: 6, Duration: 2 * time.Minute}, set...)
	return w, w.Finish()
}
