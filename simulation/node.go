// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// A node: its components in a machine.Group, its clock and its timers. Carry performs
// the effects of a step: sends go to the network, calls to the strategies, events to
// observers; other effects to carriers of the world. Timers share slots, each with at
// most one event in the heap.

// Env is what the build function of a node is given.
type Env struct {
	World *World
	Self  gossip.NodeID

	// Rand is the node's own source, seeded from the world's seed in the order in
	// which nodes start.
	Rand *rand.Rand

	// Generation is 0 for the first node at its address, then 1 and so on.
	Generation int

	// Disk is the content of the disk at the address.
	Disk Disk

	// Clock reads the node's clock. Machines are given their time by each step; Clock
	// is for parts of a node that read a clock in production, like the fast path of
	// messages.
	Clock machine.Clock
}

// Build builds the components of one incarnation of a node.
type Build func(Env) []machine.Component

// place is an address, the node that is alive there, and the disk.
type place struct {
	index       int32
	address     gossip.Address
	build       Build
	node        *Node // Nil while no node is alive there.
	incarnation int32 // Incarnation of the last node there.
	disk        disk
}

// Node is one incarnation of a node. It stays readable after its end.
type Node struct {
	world       *World
	place       *place
	id          gossip.NodeID
	incarnation int32
	group       *machine.Group
	clock       clock

	slots []slot
	free  []int32
	named map[timerKey]int32

	processes map[callKey]*strategyProcess // What answers its calls.
	lateCall  *pendingCall                 // The call whose late answer is fed in the present step; nil: none.
	blocked   map[gossip.NodeID]bool       // Peers whose messages are refused.

	frozen  bool
	thaws   int     // How often it was thawed.
	thawed  int64   // World time at which it was thawed last.
	waiting []event // Events that came while the node was frozen.

	ended        bool
	why          string        // Why it ended.
	endReason    string        // Set within a step: why the node ends after the step.
	crashCounter *crashCounter // Counts messages until a crash in the middle of a step; nil: none is planned.
	crashed      bool          // The node has crashed in the middle of the present step.
}

type timerKey struct {
	of    machine.ID
	timer machine.Timer
}

type callKey struct {
	of        machine.ID
	port, key string
}

// slot is a timer of a node. At most one event of the heap, the one numbered pending,
// stands for it: a timer that is postponed again and again costs one event each time
// its event surfaces, not one for each postponement.
type slot struct {
	key       timerKey
	at        int64 // World time at which the timer is due, if armed.
	pendingAt int64
	pending   uint64 // Number of the event; zero: no event stands for the timer.
	armed     bool
}

// ID returns the node's identity.
func (n *Node) ID() gossip.NodeID { return n.id }

// Generation returns 0 for the first node at its address, then 1 and so on.
func (n *Node) Generation() int { return int(n.incarnation) - 1 }

// Alive reports whether the node has not ended. A frozen node is alive.
func (n *Node) Alive() bool { return !n.ended }

// Frozen reports whether the node is frozen at present.
func (n *Node) Frozen() bool { return n.frozen }

// Ended returns why the node ended, and whether it has ended.
func (n *Node) Ended() (string, bool) { return n.why, n.ended }

// Ending reports whether the node ends after its present step.
func (n *Node) Ending() bool { return n.endReason != "" }

// Thawed returns the world time at which the node last continued after a pause, zero
// without a pause.
func (n *Node) Thawed() time.Duration { return time.Duration(n.thawed) }

// Now returns what the node's clocks show.
func (n *Node) Now() machine.Now {
	return machine.Now{
		Mono: n.clock.at(n.world.now),
		Wall: n.world.Wall().Add(n.clock.wall),
	}
}

// Machine returns the machine of the component with the given service, or nil.
func (n *Node) Machine(s machine.Service) machine.Machine {
	for _, c := range n.group.Components() {
		if c.Service == s {
			return c.Machine
		}
	}
	return nil
}

func (n *Node) component(s machine.Service) (machine.ID, bool) {
	for id, c := range n.group.Components() {
		if c.Service == s {
			return machine.ID(id), true
		}
	}
	return 0, false
}

// Perform carries out an effect on behalf of the component with the given
// service, within a function given to [World.Carry] or a step.
func (n *Node) Perform(s machine.Service, e machine.Effect) {
	if id, ok := n.component(s); ok {
		n.Carry(id, e)
	}
}

// Input feeds an input to the component with the given service, as soon as the node is
// not frozen. It does nothing after the end of the node.
func (n *Node) Input(s machine.Service, in machine.Input) {
	if n.Alive() {
		n.world.Input(n.place.address, s, in)
	}
}

// Enqueue adds an input to the queue of the present step, for the component with the
// given service. It may only be called within a function given to [World.Carry].
func (n *Node) Enqueue(s machine.Service, in machine.Input) {
	if id, ok := n.component(s); ok {
		n.group.Enqueue(id, in)
	}
}

// Carry carries out an effect of one component.
func (n *Node) Carry(from machine.ID, e machine.Effect) {
	w := n.world
	if n.crashed {
		// The node has crashed: the remaining effects of the step are dropped.
		return
	}
	if n.lateCall != nil {
		w.strategies.rejectLate(n, from, e)
	}
	switch e := e.(type) {
	case machine.Send:
		w.network.send(n, from, e)
		if n.crashCounter != nil {
			n.countSent(e.Message)
		}
	case machine.Arm:
		n.arm(timerKey{of: from, timer: e.Timer}, e.At)
	case machine.Disarm:
		if i, ok := n.named[timerKey{of: from, timer: e.Timer}]; ok {
			n.slots[i].armed = false
			n.release(i)
		}
	case machine.Publish:
		w.trace.add(line{at: w.now, place: n.place.index, peer: -1, verb: verbPublished, note: e.Event})
		w.observe(n, from, e.Event)
		for _, ends := range w.endings {
			if why := ends(e.Event); why != "" {
				n.endReason = why
			}
		}
	case machine.Decide:
		w.trace.add(line{at: w.now, place: n.place.index, peer: -1, verb: verbDecided, note: e})
		w.observe(n, from, e)
	case machine.Call:
		w.strategies.call(n, from, e)
	default:
		c := &n.group.Components()[from]
		for _, carry := range w.carriers {
			if carry(n, c, e) {
				return
			}
		}
		machine.Assert(false, "an effect has somebody to carry it out", "component", c.Name, "effect", w.trace.typeOf(e).name)
	}
}

func (n *Node) arm(key timerKey, at machine.Instant) {
	i, ok := n.named[key]
	due, ever := n.clock.world(at)
	if !ever {
		if ok {
			n.slots[i].armed = false
			n.release(i)
		}
		return
	}
	if !ok {
		i = n.slot(key)
	}
	s := &n.slots[i]
	s.at, s.armed = max(due, n.world.now), true
	if s.pending == 0 || s.pendingAt > s.at {
		n.expect(i)
	}
}

func (n *Node) slot(key timerKey) int32 {
	var i int32
	if last := len(n.free) - 1; last >= 0 {
		i = n.free[last]
		n.free = n.free[:last]
	} else {
		n.slots = append(n.slots, slot{})
		i = int32(len(n.slots) - 1)
	}
	n.slots[i] = slot{key: key}
	n.named[key] = i
	return i
}

// expect puts an event for a timer into the heap.
func (n *Node) expect(i int32) {
	s := &n.slots[i]
	s.pendingAt = s.at
	s.pending = n.world.push(event{
		at: s.at, typ: eventTimer, ref: i, place: n.place.index, incarnation: n.incarnation,
	})
}

// release frees a slot that is neither armed nor has an event.
func (n *Node) release(i int32) {
	s := &n.slots[i]
	if s.armed || s.pending != 0 || s.key.timer == nil {
		return
	}
	delete(n.named, s.key)
	n.slots[i] = slot{}
	n.free = append(n.free, i)
}

// timerEvent handles the event of a timer, which may have been postponed or disarmed
// since.
func (n *Node) timerEvent(e event) {
	s := &n.slots[e.ref]
	if s.pending != e.seq {
		return
	}
	s.pending = 0
	switch {
	case !s.armed:
	case s.at > n.world.now:
		n.expect(e.ref)
		return
	default:
		s.armed = false
		key := s.key
		n.world.trace.add(line{at: n.world.now, place: n.place.index, peer: -1, verb: verbFired, note: key.timer})
		n.step(key.of, machine.Fired{Timer: key.timer})
	}
	n.release(e.ref)
}

// step feeds one input and calls the checkers.
func (n *Node) step(to machine.ID, in machine.Input) {
	n.group.Step(n.Now(), to, in)
	n.stepped()
}

func (n *Node) stepped() {
	w := n.world
	for _, c := range w.checkers {
		if err := c.Stepped(w, n); err != nil {
			w.Fail(err)
		}
	}
	if n.endReason != "" {
		w.end(n, n.endReason)
	}
}

// systemClock is a node's clock for the parts that are built with the node.
type systemClock struct{ n *Node }

// Now returns what the node's clocks show.
func (c systemClock) Now() machine.Now { return c.n.Now() }

// Age returns for how long the node has lived, in the world's time.
func (n *Node) Age() time.Duration { return time.Duration(n.world.now - n.clock.started) }
