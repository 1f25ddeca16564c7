// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/majority"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation"
)

// The strategy lease-majority in a world: a store of leases with a clock of its own ([store]),
// the machine of production for each node ([leaseMachine]), and a network between the two with
// faults of its own ([LeaseFaults]). A node that is frozen freezes its machine, and one that
// crashes leaves its lease behind.

// LeaseFaults are what happens between nodes and the store of leases. The zero value loses
// nothing.
type LeaseFaults struct {
	// Min and Max bound how long a request and an answer take, each. Both zero: 1 to 20
	// milliseconds.
	Min, Max time.Duration
	// LoseRequest, LoseAnswer and Late are chances: that a request does not arrive, that its
	// answer does not, and that a request arrives up to 20 seconds late.
	LoseRequest, LoseAnswer, Late float64
	// Down has every request fail.
	Down bool
}

// Leases are lease-majority with its store. The zero value has the default parameters; it is for
// one world.
type Leases struct {
	// Config is the section downing. The zero value means the defaults.
	Config downing.Config
	// Faults change with [Leases.Set].
	Faults LeaseFaults

	// Granted and Lost count calls that the store has granted, and messages that were lost.
	Granted, Lost int

	world   *simulation.World
	rand    *rand.Rand
	store   store
	nodes   map[gossip.NodeID]*leaseMachine
	cut     map[gossip.Address]bool
	holders map[uint64]gossip.NodeID // Who has held the lease by a token.
}

// config returns the section, with what the strategy needs.
func (l *Leases) config() downing.Config {
	c := l.Config
	if c.Strategy == "" {
		c = downing.Default()
	}
	c.Strategy = downing.LeaseMajorityName
	if c.LeaseMajority.Store == "" {
		c.LeaseMajority.Store = "simulated"
	}
	if c.LeaseMajority.Lease == "" {
		c.LeaseMajority.Lease = "simulated"
	}
	return c
}

// Downing returns the strategy as nodes use it.
func (l *Leases) Downing() protocol.Downing {
	c := l.config()
	return protocol.Downing{
		Config: c, Version: "1", Parameters: c.Identify(c.LeaseMajority.Parameters()), Class: c.Promise(downing.Class{}),
		Keeps: c.LeaseMajority.ReleaseAfter, Load: 1,
		Misfit: downing.LeaseMajority{Role: c.LeaseMajority.Role}.Misfit,
	}
}

// Serve has the nodes of a world ask the store.
func (l *Leases) Serve(w *simulation.World) {
	l.world, l.rand = w, w.Source(sourceLeases)
	l.store = store{ppm: l.rand.Int64N(20_001) - 10_000, leases: map[string]storedLease{}}
	l.nodes, l.cut, l.holders = map[gossip.NodeID]*leaseMachine{}, map[gossip.Address]bool{}, map[uint64]gossip.NodeID{}
	w.Strategies().Handle(protocol.CallDowning, l.handle)
	w.Observe(func(o simulation.Observation) {
		n := l.nodes[o.Node.ID()]
		switch e := o.Event.(type) {
		case protocol.Settled:
			if n != nil {
				l.stepWhenThawed(n, majority.Input{Kind: majority.Settled})
			}
		case simulation.Ended:
			if n != nil && e.Why != simulation.Crashed {
				l.step(n, majority.Input{Kind: majority.Closed})
			}
			delete(l.nodes, o.Node.ID())
		}
	})
}

// Set changes the faults from now on.
func (l *Leases) Set(f LeaseFaults) {
	l.Faults = f
	l.world.Log("leases %+v", f)
}

// Disturb changes the faults, and who reaches the store, at random until a moment of the world,
// from when on there are none.
func (l *Leases) Disturb(until time.Duration) {
	if l.world.Now() >= until {
		clear(l.cut)
		l.Set(LeaseFaults{})
		return
	}
	l.Set([]LeaseFaults{
		{}, {}, {Down: true}, {Max: 4 * time.Second}, {LoseRequest: 0.3, LoseAnswer: 0.3, Late: 0.3}, {LoseAnswer: 1},
	}[l.rand.IntN(6)])
	for _, n := range l.world.Nodes() {
		l.cut[n.ID().Address] = l.rand.IntN(6) == 0
	}
	l.world.After(time.Second+time.Duration(l.rand.Int64N(int64(15*time.Second))), func() { l.Disturb(until) })
}

// Cut makes the store unreachable from an address, or reachable again.
func (l *Leases) Cut(a gossip.Address, cut bool) {
	l.cut[a] = cut
	l.world.Log("leases cut off %v: %v", a, cut)
}

// Holds returns the node that holds the lease by its own clock, or none.
func (l *Leases) Holds() (gossip.NodeID, bool) {
	for _, n := range l.world.Nodes() {
		if m := l.nodes[n.ID()]; m != nil {
			if _, held := m.machine.Token(m.now()); held {
				return n.ID(), true
			}
		}
	}
	return gossip.NodeID{}, false
}

// leaseMachine is the machine of the strategy for one node, with the question that it has not
// answered.
type leaseMachine struct {
	node    *simulation.Node
	machine *majority.Machine
	reply   func(result any, err error)
	asked   int // How many questions there were.
	wakes   int // How often the timer was set.
}

// now reads the clock of the node.
func (n *leaseMachine) now() time.Duration { return time.Duration(n.node.Now().Mono) }

// leaseMachineOf returns the machine for a node, which it makes if there is none.
func (l *Leases) leaseMachineOf(n *simulation.Node) *leaseMachine {
	known := l.nodes[n.ID()]
	if known == nil {
		s := majority.Default()
		s.LeaseMajorityConfig, s.Owner = l.config().LeaseMajority, n.ID().Address.String()
		known = &leaseMachine{node: n, machine: majority.NewMachine(s, strconv.FormatUint(uint64(n.ID().UID), 16))}
		l.nodes[n.ID()] = known
	}
	return known
}

// handle asks the machine of a node for a decision, which has until the limit of the call.
func (l *Leases) handle(node *simulation.Node, c machine.Call, reply func(result any, err error)) {
	request, ok := c.Request.(protocol.DowningRequest)
	machine.Assert(ok, "calls for downing decisions are requests for them")
	n := l.leaseMachineOf(node)
	if n.reply != nil {
		n.reply(nil, context.Canceled) // The machine of the node has given the question up.
		l.step(n, majority.Input{Kind: majority.Ended})
	}
	n.asked++
	question := n.asked
	n.reply = reply
	l.world.After(c.Limit, func() {
		if n.asked == question && n.reply != nil {
			n.reply(nil, context.DeadlineExceeded)
			n.reply = nil
			l.stepWhenThawed(n, majority.Input{Kind: majority.Ended})
		}
	})
	l.step(n, majority.Input{Kind: majority.Asked, View: request.View})
}

// frozenLook is the time between two looks whether a frozen node has thawed.
const frozenLook = 5 * time.Millisecond

// stepWhenThawed steps the machine for a node, as soon as the node is not frozen.
func (l *Leases) stepWhenThawed(n *leaseMachine, in majority.Input) {
	switch {
	case !n.node.Alive():
	case n.node.Frozen():
		l.world.After(frozenLook, func() { l.stepWhenThawed(n, in) })
	default:
		l.step(n, in)
	}
}

// step steps the machine of a node, and carries out what it asks.
func (l *Leases) step(n *leaseMachine, in majority.Input) {
	out := n.machine.Step(in, n.now())
	if out.Call != nil {
		l.ask(n, *out.Call)
	}
	if r := out.Reply; r != nil && n.reply != nil {
		reply := n.reply
		n.reply = nil
		if r.Err != nil {
			reply(nil, r.Err)
		} else {
			reply(r.Decision, nil)
		}
	}
	l.check(n)
	n.wakes++
	if at, due := n.machine.Wake(); due && n.node.Alive() {
		wakes := n.wakes
		l.world.After(max(at-n.now(), time.Millisecond), func() {
			if n.wakes == wakes {
				l.stepWhenThawed(n, majority.Input{})
			}
		})
	}
}

// check fails the run when two nodes hold the lease, each by its own clock, or when one token
// belongs to two nodes.
func (l *Leases) check(n *leaseMachine) {
	token, held := n.machine.Token(n.now())
	if !held {
		return
	}
	if before, known := l.holders[token]; known && before != n.node.ID() {
		l.world.Fail(fmt.Errorf("I15: %v and %v have the token %d", before, n.node.ID(), token))
	}
	l.holders[token] = n.node.ID()
	for _, other := range l.world.Nodes() {
		if m := l.nodes[other.ID()]; m != nil && m != n && !other.Frozen() {
			if _, too := m.machine.Token(m.now()); too {
				l.world.Fail(fmt.Errorf("I15: %v and %v hold the lease", n.node.ID(), other.ID()))
			}
		}
	}
}

// sourceLeases is the number of the source that the faults of leases are drawn from.
const sourceLeases = 11

// errStore is the answer to a request while the store is down.
var errStore = errors.New("the store of leases is down")

// ask carries a request to the store, and its answer back. The call returns within its timeout,
// whatever becomes of the request.
func (l *Leases) ask(n *leaseMachine, c majority.Call) {
	returned := false
	answer := func(in majority.Input) {
		if !returned {
			returned = true
			l.stepWhenThawed(n, in)
		}
	}
	l.world.After(majority.Default().RequestTimeout, func() {
		answer(majority.Input{Kind: majority.Answered, Err: context.DeadlineExceeded})
	})
	f := l.Faults
	there, back := l.latency(f), l.latency(f)
	lostThere, lostBack := l.rand.Float64() < f.LoseRequest, l.rand.Float64() < f.LoseAnswer
	if l.rand.Float64() < f.Late {
		there += time.Duration(l.rand.Int64N(int64(20 * time.Second)))
	}
	address := n.node.ID().Address
	switch {
	case lostThere || l.cut[address]:
		l.Lost++
		return
	case f.Down:
		l.world.After(there, func() { answer(majority.Input{Kind: majority.Answered, Err: errStore}) })
		return
	}
	l.world.After(there, func() {
		if l.Faults.Down {
			return // It went down with the request.
		}
		a := l.store.serve(c, l.world.Now())
		if a.Granted {
			l.Granted++
		}
		l.world.Log("leases %v: %+v: %+v", address, c, a)
		if lostBack || l.cut[address] {
			l.Lost++
			return
		}
		l.world.After(back, func() { answer(majority.Input{Kind: majority.Answered, Answer: a}) })
	})
}

func (l *Leases) latency(f LeaseFaults) time.Duration {
	least, most := f.Min, f.Max
	if most == 0 {
		least, most = time.Millisecond, 20*time.Millisecond
	}
	return least + time.Duration(l.rand.Int64N(max(int64(most-least), 1)))
}

// store grants leases, and ends them by a clock of its own.
type store struct {
	ppm    int64 // By how much its clock is fast.
	token  uint64
	leases map[string]storedLease
}

// storedLease is a lease as the store has it. Without an owner it was given back.
type storedLease struct {
	owner string
	token uint64
	end   time.Duration // By the clock of the store.
}

// serve carries out a request at a moment of the world.
func (s *store) serve(c majority.Call, at time.Duration) lease.Answer {
	now := at + at/1_000_000*time.Duration(s.ppm)
	have := s.leases[c.Claim.Name]
	if c.Give {
		if have.owner == c.Claim.Owner {
			s.leases[c.Claim.Name] = storedLease{}
		}
		return lease.Answer{}
	}
	free := have.owner == "" || now >= have.end
	switch {
	case !free && have.owner != c.Claim.Owner:
		return lease.Answer{Owner: have.owner}
	case free:
		s.token++
		have.token = s.token
	}
	have.owner, have.end = c.Claim.Owner, now+c.Claim.TTL
	s.leases[c.Claim.Name] = have
	return lease.Answer{Granted: true, Owner: have.owner, Token: have.token, TTL: c.Claim.TTL}
}
