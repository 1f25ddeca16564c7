// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Env is what a node is built from.
type Env struct {
	World *World
	Self  gossip.NodeID

	// Rand is the node's own source, drawn from the seed, the address and
	// the generation.
	Rand *rand.Rand

	// Generation is 0 for the first node at its address, then 1 and so on.
	Generation int

	// Disk is what the disk at the address holds.
	Disk Disk

	// Clock reads the node's clock. Machines are handed their time; it is
	// for the parts of a node that production reads a clock in, like the
	// fast path of messages.
	Clock machine.Clock
}

// Build builds the components of one incarnation of a node.
type Build func(Env) []machine.Component

// place is an address and whoever lives there.
type place struct {
	index       int32
	address     gossip.Address
	build       Build
	node        *Node // Nil while nobody lives there.
	incarnation int32 // Of the node that lives or lived there last.
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

	served  map[callKey]*served    // Who answers its calls.
	muted   *asking                // The call whose late answer is being fed.
	blocked map[gossip.NodeID]bool // Peers whose messages are refused.

	frozen  bool
	thaws   int     // How often it was thawed.
	thawed  int64   // World time at which it was thawed last.
	waiting []event // What came while the node was frozen.

	ended bool
	why   string // Why it ended.
	quit  string // Set within a step: the node ends after it.
	fuse  *fuse  // It crashes in the middle of a step.
	torn  bool   // It has crashed in the middle of this step.
}

type timerKey struct {
	of    machine.ID
	timer machine.Timer
}

type callKey struct {
	of        machine.ID
	port, key string
}

// slot is a timer of a node. At most one event of the heap, the one numbered
// pending, stands for it: a timer that is put off again and again costs one
// event for each time that its event surfaces, not one for each request.
type slot struct {
	key       timerKey
	at        int64 // World time at which it is due, if armed.
	pendingAt int64
	pending   uint64 // Zero: no event stands for it.
	armed     bool
}

// ID returns the node's identity.
func (n *Node) ID() gossip.NodeID { return n.id }

// Generation returns 0 for the first node at its address, then 1 and so on.
func (n *Node) Generation() int { return int(n.incarnation) - 1 }

// Alive reports whether the node has not ended. A frozen node is alive.
func (n *Node) Alive() bool { return !n.ended }

// Frozen reports whether the node runs nothing at present.
func (n *Node) Frozen() bool { return n.frozen }

// Ended returns why the node ended, and whether it has.
func (n *Node) Ended() (string, bool) { return n.why, n.ended }

// Ending reports whether the node ends after its present step.
func (n *Node) Ending() bool { return n.quit != "" }

// Thawed returns the time of the world at which the node ran on after a pause last, zero
// without a pause.
func (n *Node) Thawed() time.Duration { return time.Duration(n.thawed) }

// Now returns what the node's clocks show.
func (n *Node) Now() machine.Now {
	return machine.Now{
		Mono: n.clock.at(n.world.now),
		Wall: n.world.Wall().Add(n.clock.wall),
	}
}

// Machine returns the machine of the component with the given service, nil
// without one.
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

// Input feeds an input to the component with the given service, as soon as the
// node runs. It does nothing after the end of the node.
func (n *Node) Input(s machine.Service, in machine.Input) {
	if n.Alive() {
		n.world.Input(n.place.address, s, in)
	}
}

// Enqueue puts an input in line for the component with the given service. It
// may only be called within a function given to [World.Carry].
func (n *Node) Enqueue(s machine.Service, in machine.Input) {
	if id, ok := n.component(s); ok {
		n.group.Enqueue(id, in)
	}
}

// Carry carries out an effect of one component.
func (n *Node) Carry(from machine.ID, e machine.Effect) {
	w := n.world
	if n.torn {
		return // It has crashed: what the step would do besides is never done.
	}
	if n.muted != nil {
		w.strategies.muffle(n, from, e)
	}
	switch e := e.(type) {
	case machine.Send:
		w.network.send(n, from, e)
		if n.fuse != nil {
			n.burn(e.Message)
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
				n.quit = why
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
		machine.Assert(false, "an effect has somebody to carry it out", "component", c.Name, "effect", w.trace.shape(e).name)
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

// expect puts the event that stands for a timer into the heap.
func (n *Node) expect(i int32) {
	s := &n.slots[i]
	s.pendingAt = s.at
	s.pending = n.world.push(event{
		at: s.at, typ: eventTimer, ref: i, place: n.place.index, incarnation: n.incarnation,
	})
}

// release gives a slot back that is neither armed nor expected.
func (n *Node) release(i int32) {
	s := &n.slots[i]
	if s.armed || s.pending != 0 || s.key.timer == nil {
		return
	}
	delete(n.named, s.key)
	n.slots[i] = slot{}
	n.free = append(n.free, i)
}

// surfaced handles the event of a timer.
func (n *Node) surfaced(e event) {
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

// step feeds one input and lets the checkers look.
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
	if n.quit != "" {
		w.end(n, n.quit)
	}
}

// systemClock makes a node's clock readable to what is built with it.
type systemClock struct{ n *Node }

// Now returns what the node's clocks show.
func (c systemClock) Now() machine.Now { return c.n.Now() }

// Age returns for how long the node has lived, in the world's time.
func (n *Node) Age() time.Duration { return time.Duration(n.world.now - n.clock.started) }
