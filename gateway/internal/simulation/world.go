// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/client/clientsim"
	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
	"github.com/quorate/quorate/gateway/internal/exchange"
	"github.com/quorate/quorate/simulation"
)

// The world: its bounds, the programs with their clients, what goes wrong, and the end of a run.

const (
	programs = 3
	entities = 12

	window       = 6
	maxRequests  = 12
	maxBytes     = 20 << 10
	unreadBytes  = 10 << 10
	maxReply     = 8 << 10
	maxPayload   = 3000
	writeTimeout = 2 * time.Second
	closeTimeout = 2 * time.Second
	maxQueued    = 12
	queuedBytes  = 16 << 10

	faults   = 90 * time.Second
	recovery = 40 * time.Second // After the faults all is well again within so long.
	quiet    = 20 * time.Second // Then no request fails.
	settled  = 4 * time.Second  // So long after a node has begun all clients are connected to it.
	inTime   = 2 * time.Second  // A request that fails nowhere takes no longer.
)

// Nodes is the usual number of nodes.
const Nodes = 3

// Counts sum up a run, so that a test can see that it was not an idle one.
type Counts struct {
	Begun, Handled, Again, Overloaded, Unanswered, Waited, Cut             int
	Crashes, Leaves, Freezes, Fences, Cuts, Blinds, Moves, Closes, Cancels int
	Ended                                                                  [16]int // By code.
}

// Add adds what another run has counted.
func (c *Counts) Add(o Counts) {
	c.Begun, c.Handled, c.Again, c.Overloaded = c.Begun+o.Begun, c.Handled+o.Handled, c.Again+o.Again, c.Overloaded+o.Overloaded
	c.Unanswered, c.Waited, c.Cut = c.Unanswered+o.Unanswered, c.Waited+o.Waited, c.Cut+o.Cut
	c.Crashes, c.Leaves, c.Freezes, c.Fences = c.Crashes+o.Crashes, c.Leaves+o.Leaves, c.Freezes+o.Freezes, c.Fences+o.Fences
	c.Cuts, c.Blinds, c.Moves, c.Closes, c.Cancels = c.Cuts+o.Cuts, c.Blinds+o.Blinds, c.Moves+o.Moves, c.Closes+o.Closes, c.Cancels+o.Cancels
	for code := range c.Ended {
		c.Ended[code] += o.Ended[code]
	}
}

// World is clients and nodes with gateways.
type World struct {
	*simulation.World

	rand     *rand.Rand
	calm     bool // Nothing goes wrong any more, or ever in an orderly world.
	orderly  bool // Nodes leave in order and come back, and nothing else happens.
	over     bool // The clients are closed.
	nodes    []*node
	programs []*program
	links    [][2]link // From each program to each node, and back.
	homes    []*node   // Of shards,
	epochs   []int     // and how often they have got another one.
	boxes    []*mailbox
	full     []time.Duration // A shard has no room until then.
	handed   []bool          // By shard: it is being handed over.
	ledger   *ledger
	Counts   Counts
}

// link is one direction between a program and a node.
type link struct{ cut time.Duration }

// program is a program with a client.
type program struct {
	w      *World
	at     int
	name   string
	life   int
	client *clientsim.Client
	sent   []int         // By entity.
	blind  time.Duration // It reads nothing until then.
}

// New returns a world with some nodes, in which all may go wrong.
func New(seed uint64, nodes int, set ...func(*simulation.Options)) *World {
	w := build(simulation.Options{Seed: seed, Scenario: "clients"}, nodes, false, set)
	w.injectFaults()
	return w
}

// NewOrderly returns a world in which nodes leave in order and come back, and nothing goes wrong.
func NewOrderly(seed uint64, nodes int, set ...func(*simulation.Options)) *World {
	w := build(simulation.Options{Seed: seed, Scenario: "clients-leaves"}, nodes, true, set)
	w.letNodesLeave()
	return w
}

func build(base simulation.Options, nodes int, orderly bool, set []func(*simulation.Options)) *World {
	for _, f := range set {
		f(&base)
	}
	w := &World{
		World: simulation.New(base), orderly: orderly, calm: orderly, boxes: make([]*mailbox, entities),
		epochs: make([]int, shards), full: make([]time.Duration, shards), handed: make([]bool, shards),
	}
	w.rand, w.ledger = w.Source(62), newLedger(w)
	for i := range nodes {
		n := &node{w: w, name: fmt.Sprintf("n%d", i), at: i}
		w.nodes = append(w.nodes, n)
		n.start()
	}
	for range shards {
		w.homes = append(w.homes, w.nodes[w.rand.IntN(nodes)])
	}
	w.links = make([][2]link, programs*nodes)
	for i := range programs {
		p := &program{w: w, at: i, name: fmt.Sprintf("c%d", i), sent: make([]int, entities)}
		w.programs = append(w.programs, p)
		p.open()
		p.ask()
	}
	w.checkEverySecond()
	return w
}

func hash(s string) uint64 { return xxhash.Sum64String(s) }

func timeLeft(r *clientv1.Request) time.Duration { return exchange.Left(r) }

func (w *World) chance(p float64) bool              { return !w.calm && w.rand.Float64() < p }
func (w *World) upTo(d time.Duration) time.Duration { return time.Duration(w.rand.Int64N(int64(d))) }

func (w *World) link(p *program, n *node) *link { return &w.links[p.at*len(w.nodes)+n.at][0] }
func (w *World) back(p *program, n *node) *link { return &w.links[p.at*len(w.nodes)+n.at][1] }

// open begins a life of a client.
func (p *program) open() {
	p.life++
	nodes := make([]clientsim.Node, 0, len(p.w.nodes))
	for _, n := range p.w.nodes {
		nodes = append(nodes, dialer{p.w, p, n})
	}
	cfg := client.Default()
	cfg.Queued, cfg.QueuedBytes = maxQueued, queuedBytes
	p.client = clientsim.Open(p.w, p.w.Source(1000+uint64(p.at)*100+uint64(p.life)), cfg, nodes)
}

// ask begins some requests, now and then.
func (p *program) ask() {
	pause := 400 * time.Millisecond
	if p.w.orderly {
		pause /= 3 // More is under way when a node leaves.
	}
	p.w.After(p.w.upTo(pause), func() {
		most := 4
		if p.w.chance(0.1) {
			most = 60 // More than all windows and the queue take.
		}
		if p.w.over {
			return
		}
		for range p.w.rand.IntN(most) {
			p.request()
		}
		p.ask()
	})
}

// request begins a request.
func (p *program) request() {
	w := p.w
	entity := w.rand.IntN(entities)
	p.sent[entity]++
	token := fmt.Sprintf("%s/e%d/%d", p.name, entity, p.sent[entity])
	payload := token
	if w.rand.IntN(5) == 0 {
		payload += strings.Repeat(" ", w.rand.IntN(maxPayload-len(token)))
	}
	r := &clientsim.Request{Kind: kind, Entity: fmt.Sprintf("e%d", entity), Payload: []byte(payload), Tell: w.rand.IntN(3) == 0}
	switch {
	case w.calm:
		r.Deadline = w.Now() + 5*time.Second
	case w.rand.IntN(20) > 0:
		r.Deadline = w.Now() + time.Millisecond + w.upTo([]time.Duration{20 * time.Millisecond, time.Second, 5 * time.Second}[w.rand.IntN(3)])
	}
	e := w.ledger.begin(token, r)
	w.Counts.Begun++
	began := w.Now()
	r.Done = func(result clientsim.Result) {
		w.ledger.end(e, result)
		if w.orderly && !w.over && result.Code != clientv1.Code_CODE_OK {
			w.Fail(fmt.Errorf("C8: %s ends as %v (%s) after %v, though nodes only leave in order", token, result.Code, result.Detail, w.Now()-began))
		}
		if began > faults+recovery && !w.over && (result.Code != clientv1.Code_CODE_OK || w.Now()-began > inTime) {
			w.Fail(fmt.Errorf("C7: %s ends as %v (%s) after %v, though nothing is wrong any more", token, result.Code, result.Detail, w.Now()-began))
		}
	}
	c := p.client
	c.Do(r)
	if w.chance(0.1) {
		w.Counts.Cancels++
		w.After(w.upTo(max(r.Ends()-w.Now(), 1)), func() { c.Cancel(r) })
	}
	waiting, bytes := c.Waiting()
	// (docs/clients.md, "What nodes send back, or have not had when they are gone, waits besides: at most a window of
	// each.")
	back := window * len(w.nodes)
	if most, mostBytes := maxQueued+back, queuedBytes+back*maxPayload; waiting > most || bytes < 0 || bytes > mostBytes {
		w.Fail(fmt.Errorf("C5: %d requests of %d bytes wait in %s, at most %d of %d may", waiting, bytes, p.name, most, mostBytes))
	}
}

// checkWaiting finds requests that wait for room while there is some. A program that is told of room uses it within a
// moment.
func (p *program) checkWaiting() {
	waits := func() bool {
		waiting, _ := p.client.Waiting()
		return waiting == 0 && p.client.Refused() > 0
	}
	if begun := p.w.Counts.Begun; waits() {
		p.w.After(time.Millisecond, func() {
			if waits() && p.w.Counts.Begun == begun {
				p.w.Fail(fmt.Errorf("C5: %d requests wait for room in %s, and nothing else does", p.client.Refused(), p.name))
			}
		})
	}
}

// checkEverySecond checks all nodes, clients and requests once a second.
func (w *World) checkEverySecond() {
	w.After(time.Second, func() {
		w.ledger.checkOpen()
		for _, n := range w.nodes {
			n.look()
		}
		for _, p := range w.programs {
			p.checkWaiting()
		}
		w.checkEverySecond()
	})
}

// injectFaults injects faults until the time for that is over.
func (w *World) injectFaults() {
	w.After(w.upTo(1500*time.Millisecond), func() {
		if w.Now() > faults {
			w.recover()
			return
		}
		w.injectFault(w.nodes[w.rand.IntN(len(w.nodes))], w.programs[w.rand.IntN(len(w.programs))])
		w.injectFaults()
	})
}

// letNodesLeave has nodes leave and come back until the time for that is over. A node to which all clients are
// connected always stays.
func (w *World) letNodesLeave() {
	w.After(w.upTo(3*time.Second), func() {
		if w.Now() > faults {
			return
		}
		var stay []*node
		for _, n := range w.nodes {
			if n.up && !n.going && w.Now()-n.began >= settled {
				stay = append(stay, n)
			}
		}
		if len(stay) > 1 {
			w.Counts.Leaves++
			n := stay[w.rand.IntN(len(stay))]
			n.leave()
			w.restart(n)
		}
		w.letNodesLeave()
	})
}

// injectFault injects one fault.
func (w *World) injectFault(n *node, p *program) {
	until := w.Now() + w.upTo([]time.Duration{500 * time.Millisecond, 3 * time.Second, 25 * time.Second}[w.rand.IntN(3)])
	switch w.rand.IntN(12) {
	case 0:
		w.Counts.Crashes++
		n.crash()
		w.restart(n)
	case 1:
		w.Counts.Leaves++
		n.leave()
		w.restart(n)
	case 2:
		w.freeze(n, until)
	case 3:
		w.Counts.Fences++
		n.fenced = until
	case 4, 5:
		w.Counts.Cuts++
		w.link(p, n).cut, w.back(p, n).cut = until, until
	case 6:
		w.Counts.Cuts++
		w.link(p, n).cut = until
	case 7:
		w.Counts.Cuts++
		w.back(p, n).cut = until
	case 8:
		w.Counts.Blinds++
		p.blind = until
	case 9:
		w.full[w.rand.IntN(shards)] = until
	case 10:
		w.Counts.Moves++
		w.rehome(w.rand.IntN(shards))
	case 11:
		if w.rand.IntN(4) == 0 {
			w.Counts.Closes++
			p.client.Close()
			p.open()
		}
	}
}

// freeze has a node stand still, and lose what it hosts if that takes long.
func (w *World) freeze(n *node, until time.Duration) {
	w.Counts.Freezes++
	n.frozen = max(n.frozen, until)
	life := n.life
	w.After(fence, func() {
		if n.up && n.life == life && n.frozen > w.Now() {
			w.hosted(n)
		}
	})
}

// restart starts a node anew, once it has ended.
func (w *World) restart(n *node) {
	life := n.life
	var again func()
	again = func() {
		switch {
		case n.life != life:
		case n.up:
			w.After(time.Second, again)
		default:
			n.start()
		}
	}
	w.After(w.upTo(8*time.Second), again)
}

// recover ends the faults.
func (w *World) recover() {
	w.Log("the faults are over")
	w.calm = true
	clear(w.links)
	clear(w.full)
	for _, n := range w.nodes {
		n.frozen, n.fenced = 0, 0
	}
	for _, p := range w.programs {
		p.blind = 0
	}
}

// Finish runs the world to its end, and looks at what is left.
func (w *World) Finish() error {
	if err := w.Run(faults + recovery + quiet); err != nil {
		return err
	}
	w.over = true
	for _, p := range w.programs {
		p.client.Close()
		if waiting, bytes := p.client.Waiting(); p.client.Count() != 0 || waiting != 0 || bytes != 0 {
			w.Fail(fmt.Errorf("C5: %s is closed and counts %d requests, %d waiting, %d bytes", p.name, p.client.Count(), waiting, bytes))
		}
	}
	// A request that is counted from when a node has it may last for a minute after the faults.
	if err := w.Run(clientsim.Lifetime - quiet); err != nil {
		return err
	}
	for _, n := range w.nodes {
		if n.requests != 0 || n.bytes != 0 {
			w.Fail(fmt.Errorf("C5: %s counts %d requests of %d bytes, and there is none", n.name, n.requests, n.bytes))
		}
	}
	return w.Failure()
}

// RunOrderly runs a world in which nodes leave in order, with a seed.
func RunOrderly(seed uint64, nodes int, set ...func(*simulation.Options)) (*World, error) {
	w := NewOrderly(seed, nodes, set...)
	return w, w.Finish()
}

// Run runs a world with a seed.
func Run(seed uint64, nodes int, set ...func(*simulation.Options)) (*World, error) {
	w := New(seed, nodes, set...)
	return w, w.Finish()
}
