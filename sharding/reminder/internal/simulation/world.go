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
	"github.com/quorate/quorate/sharding/reminder/internal/buckets"
	"github.com/quorate/quorate/sharding/state/memory"
	world "github.com/quorate/quorate/simulation"
)

// The world: which node has which bucket, and what happens to nodes, buckets and the store. Nodes and
// their buckets are in owner.go, the clients and what must hold of their reminders in clients.go.

// Options say what a world is like.
type Options struct {
	Seed     uint64
	Nodes    int
	Buckets  int
	Entities int
	Duration time.Duration // How long faults strike, and clients change reminders.
}

// Counts sum up a run, so that a test can see that it was not an idle one.
type Counts struct {
	Set, Canceled, Refused, Repeated        int // Changes: acknowledged; refused; asked for again.
	Fired, Handled, Doubled, Unacknowledged int // Deliveries: begun; come to entities; more than once; without an acknowledgement.
	Stale                                   int // Deliveries that an owner has begun that was replaced.
	Fenced, Closed                          int // Buckets and pages that ended, because of the store.
	Missed                                  int // Occurrences that a delivery stands for besides its own.
	Moves, Planned, Freezes, Crashes, Downs int
	Jumps, Late                             int // Of wall clocks; calls of the store that come after nobody waits.
}

// Bound is how late a reminder may reach its entity after its time, or after the faults are over (docs/reminders.md,
// "the store does not answer: for that time, and up to 30 s.").
const Bound = 30 * time.Second

// Nodes is the usual number of nodes.
const Nodes = 4

const (
	pages    = 2
	inFlight = 3
	recovery = 60 * time.Second // After the faults all reminders are as they should be after so long.
	window   = 60 * time.Second // And stay so for so long.
	maxHeard = 5 * time.Second  // Until a node hears that it has, or has not, a bucket.
	maxJump  = 10 * time.Second // Of a wall clock.
)

// settings of the buckets.
func settings() buckets.Config {
	return buckets.Config{
		Pages: pages, InFlight: inFlight, RetryMin: 200 * time.Millisecond, RetryMax: 3 * time.Second,
		ReopenMin: 200 * time.Millisecond, ReopenMax: 3 * time.Second,
	}
}

// World is buckets over a store, and clients that set reminders.
type World struct {
	*world.World

	opt     Options
	rand    *rand.Rand
	nodes   []*node
	homes   []home // Of the buckets.
	n       uint64 // The version of the map of homes.
	storage *storage
	calm    bool // The faults are over.
	calls   map[uint64]func(buckets.Answer)
	asked   uint64
	clients []*client
	Counts  Counts
}

// home is where a bucket lives by the map. Nodes hear of it late.
type home struct {
	node  int
	epoch epoch.Epoch
}

// New returns a world that has not begun.
func New(opt Options, set ...func(*world.Options)) *World {
	base := world.Options{Seed: opt.Seed, Scenario: "sharding-reminders"}
	for _, f := range set {
		f(&base)
	}
	w := &World{World: world.New(base), opt: opt, calls: map[uint64]func(buckets.Answer){}}
	w.rand = w.Source(61)
	w.storage = &storage{w: w, records: memory.New()}
	for i := range opt.Nodes {
		w.nodes = append(w.nodes, &node{w: w, i: i, buckets: map[int]*bucket{}, hosts: map[int]epoch.Epoch{}})
	}
	w.homes = make([]home, opt.Buckets)
	for b := range opt.Buckets {
		w.move(b)
	}
	for e := range opt.Entities {
		for name := range 2 {
			w.clients = append(w.clients, newClient(w, e, name))
		}
	}
	w.trouble()
	return w
}

// chance is true with a probability while faults strike.
func (w *World) chance(p float64) bool { return !w.calm && w.rand.Float64() < p }

// upTo draws a time.
func (w *World) upTo(d time.Duration) time.Duration { return time.Duration(w.rand.Int64N(int64(d))) }

// move gives a bucket a new home. The old one hears of it some time, the new one too.
func (w *World) move(b int) {
	w.n++
	old := w.homes[b]
	h := home{w.rand.IntN(len(w.nodes)), epoch.Epoch{
		Born: 1, Term: singleton.Term{UpNumber: gossip.UpNumber(1 + w.n/10), UID: gossip.UID(1), Start: 1}, N: w.n,
	}}
	w.homes[b] = h
	w.Log("bucket %d lives on node %d by %v", b, h.node, h.epoch)
	told, heard := w.upTo(maxHeard), w.upTo(maxHeard)
	w.After(told, func() { w.nodes[old.node].do(func(n *node) { n.release(b, old.epoch) }) })
	w.After(heard, func() { w.nodes[h.node].do(func(n *node) { n.host(b, h.epoch) }) })
}

// plan moves a bucket in order: what it has under way ends first, for a time.
func (w *World) plan(b int) {
	h := w.homes[b]
	w.nodes[h.node].do(func(n *node) {
		if of := n.buckets[b]; of != nil && n.hosts[b] == h.epoch {
			w.Log("bucket %d closes on node %d", b, n.i)
			of.closing = true
			of.step(buckets.Close{})
		}
	})
	w.After(time.Second+w.upTo(3*time.Second), func() {
		if w.homes[b] == h {
			w.move(b)
		}
	})
}

// trouble lets faults strike until the time is over.
func (w *World) trouble() {
	w.After(w.upTo(2*time.Second), func() {
		if w.Now() > w.opt.Duration {
			w.recover()
			return
		}
		n := w.nodes[w.rand.IntN(len(w.nodes))]
		switch w.rand.IntN(7) {
		case 0:
			w.Counts.Moves++
			w.move(w.rand.IntN(len(w.homes)))
		case 1:
			w.Counts.Planned++
			w.plan(w.rand.IntN(len(w.homes)))
		case 2:
			w.Counts.Freezes++
			n.freeze(w.upTo(40 * time.Second))
		case 3:
			w.Counts.Crashes++
			n.crash()
		case 4:
			w.Counts.Downs++
			w.storage.fail(w.upTo(20 * time.Second))
		default:
			w.Counts.Jumps++
			n.ahead = w.upTo(2*maxJump) - maxJump
			w.Log("the wall clock of node %d is ahead by %v", n.i, n.ahead)
		}
		w.trouble()
	})
}

// recover ends the faults. What was delayed before comes all the same.
func (w *World) recover() {
	w.Log("the faults are over")
	w.calm = true
	w.storage.until = 0
	for _, n := range w.nodes {
		n.ahead = 0
	}
}

// Finish runs the world to its end, and examines every reminder.
func (w *World) Finish() error {
	if err := w.Run(w.opt.Duration + recovery); err != nil {
		return err
	}
	for _, c := range w.clients {
		c.mark(0)
	}
	if err := w.Run(window); err != nil {
		return err
	}
	for _, c := range w.clients {
		c.mark(1)
	}
	for b := range w.homes { // What the next owners read is what there is.
		w.move(b)
	}
	if err := w.Run(3 * maxHeard); err != nil {
		return err
	}
	for _, c := range w.clients {
		c.list()
	}
	if err := w.Run(time.Second); err != nil {
		return err
	}
	live := 0
	for _, c := range w.clients {
		if err := c.check(); err != nil {
			w.Fail(fmt.Errorf("%s of %s: %w", c.key.Name, c.key.ID, err))
		}
		if c.lives() {
			live++
		}
	}
	held := 0
	for b, h := range w.homes {
		if of := w.nodes[h.node].buckets[b]; of != nil {
			held += of.machine.Gauges().Reminders
		}
	}
	if held != live {
		w.Fail(fmt.Errorf("M6: the owners hold %d reminders, there are %d", held, live))
	}
	return w.Failure()
}

// Run runs a world of the usual size with a seed.
func Run(seed uint64, nodes int, set ...func(*world.Options)) (*World, error) {
	w := New(Options{Seed: seed, Nodes: nodes, Buckets: 3, Entities: 8, Duration: 2 * time.Minute}, set...)
	return w, w.Finish()
}
