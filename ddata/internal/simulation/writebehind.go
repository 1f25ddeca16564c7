// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	world "github.com/quorate/quorate/simulation"
)

// Stores that are written behind: a node that crashes has acknowledged more than its disk holds. [WriteBehind] draws
// how much; faults are the ways in which nodes end and come back; ended and forgiveTails say what may be missing after
// that.

// WriteBehind is [Chaos] with a durable group that writes behind. Nothing may be lost by crashes of so few nodes that
// the others are a winning part of every set; now and then all nodes crash at once, by which something may be.
func WriteBehind(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := options(seed, nodes)
	r := rand.New(rand.NewPCG(seed, 23))
	o.World.Scenario, o.Durable = "data-behind", true
	o.World.Calls = world.Calls{Min: time.Millisecond, Max: 30 * time.Millisecond, Fail: 0.01, Hang: 0.002, Late: 0.01}
	o.Lag = time.Second
	o.WriteBehind = protocol.WriteBehindBounds{Interval: time.Duration(1+r.IntN(20)) * 200 * time.Millisecond, Bytes: []int64{1 << 10, 1 << 20}[r.IntN(2)]}
	return runChaos(New(o, set...))
}

// writeBehindCluster is a cluster whose disks may lack the last changes that were acknowledged, their tail.
type writeBehindCluster struct{ *Cluster }

// faults are the ways in which nodes end, and are started again soon: by a crash, in order, and all of them at once.
func (c writeBehindCluster) faults() []world.Fault {
	return []world.Fault{
		{Name: "bounce", Weight: 20, Inject: func(w *world.World, r *rand.Rand) {
			if n := pick(w, r); n != nil && c.mayLose(n) {
				c.Crash(n.ID().Address)
				c.restartSoon(n)
			}
		}},
		{Name: "narrow", Weight: 12, Inject: func(w *world.World, r *rand.Rand) { c.leaveBareMajority(w, r) }},
		{Name: "stop", Weight: 6, Inject: func(w *world.World, r *rand.Rand) {
			if n := pick(w, r); n != nil && !n.Frozen() && c.mayLose(n) {
				n.Input(membershipService, stop{})
				c.restartSoon(n)
			}
		}},
		{Name: "power", Weight: 1, Inject: func(w *world.World, _ *rand.Rand) {
			c.Power++
			for _, n := range w.Nodes() {
				c.Crash(n.ID().Address)
				c.restartSoon(n)
			}
			c.forgiveTails()
		}},
	}
}

// leaveBareMajority divides the nodes, so that writes are held by no more than a majority. Then it crashes as many
// nodes of that majority as may be, and puts them on the other side: what they have lost is held only by nodes from
// which they get nothing but greetings, without which a node that was started does not take part.
func (c writeBehindCluster) leaveBareMajority(w *world.World, r *rand.Rand) {
	nodes := w.Nodes()
	if len(nodes) < 3 || c.bareMajority {
		return
	}
	r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	most := len(nodes)/2 + 1
	crash := 1 + r.IntN(len(nodes)-most)
	side := map[gossip.Address]int{}
	for i, n := range nodes {
		side[n.ID().Address] = min(1, i/most)
	}
	c.bareMajority = true
	heal := c.divide(side)
	w.After(time.Second+c.soon(2*time.Second), func() {
		heal()
		for _, n := range nodes[:crash] {
			if n.Alive() && c.mayLose(n) {
				side[n.ID().Address] = 1
				c.Crash(n.ID().Address)
				c.restartSoon(n)
			}
		}
		heal = c.divide(side)
		w.After(5*time.Second+c.soon(5*time.Second), func() {
			heal()
			c.bareMajority = false
		})
	})
}

// divide loses all messages between two sides but greetings ([protocol.Hello]).
func (c writeBehindCluster) divide(side map[gossip.Address]int) (heal func()) {
	return c.World.Network().Lose("narrow", func(from, to gossip.Address, message any) bool {
		e, ok := message.(protocol.Envelope)
		if _, hello := e.Body.(protocol.Hello); !ok || hello {
			return false
		}
		return side[from] != side[to]
	})
}

// pick draws a node.
func pick(w *world.World, r *rand.Rand) *world.Node {
	nodes := w.Nodes()
	if len(nodes) == 0 {
		return nil
	}
	return nodes[r.IntN(len(nodes))]
}

// restartSoon starts a node again soon.
func (c writeBehindCluster) restartSoon(n *world.Node) {
	c.World.After(c.soon(2*time.Second), func() { c.Join(number(n.ID().Address)) })
}

// ended decides what is on the disk of a node that has ended: a node that ends in order writes what is missing.
func (c writeBehindCluster) ended(n *world.Node, crashed bool) {
	d, at := c.disk(n.ID().Address), c.nodes[n.ID()]
	d.ended(c.rand, crashed)
	if !crashed {
		for _, p := range at.machine.Final() {
			d.write(p)
		}
		d.answered = true
	}
	for _, e := range d.now.entries { //quorate:unordered any of them
		if own, ok := at.table.Get(e.Key); crashed && ok && table.HashOfEntry(own) != table.HashOfEntry(e) {
			c.Tails++
			return
		}
	}
}

// forgiveTails has the history expect nothing while the replicas that run and are sure are no winning part of some set,
// and for as long after that as an operation may take: so many have crashed together that the last changes they
// acknowledged may be lost.
func (c writeBehindCluster) forgiveTails() {
	if c.opt.WriteBehind.Interval == 0 {
		return
	}
	now := c.World.Now()
	if !c.keeps() {
		c.failing = now + c.opt.Limit + 2*time.Second
	}
	if now < c.failing {
		c.History.forgive()
	}
}

// keeps reports whether the replicas that run and are sure are a winning part of every set in use.
func (c writeBehindCluster) keeps() bool {
	sure := map[protocol.ReplicaID]bool{}
	for _, n := range c.World.Nodes() {
		at := c.nodes[n.ID()]
		sure[at.replica] = c.members[n.ID()] != nil && !at.machine.Unsure(0)
	}
	for _, n := range c.World.Nodes() {
		if !c.nodes[n.ID()].machine.Keeps(0, func(id protocol.ReplicaID) bool { return sure[id] }) {
			return false
		}
	}
	return len(sure) > 0
}
