// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/optional"
)

// The life of nodes: Start builds one at an address, Crash and CrashWithin end it,
// Restart starts the next one there, Freeze and Thaw stop and continue it, SetWall
// moves its wall clock. At the end of the file, for how long the world has been
// undisturbed.

// Start starts a node with a new uid, at an address where no node is alive.
func (w *World) Start(a gossip.Address, build Build) *Node {
	p := w.place(a)
	machine.Assert(p.node == nil, "an address has one node at a time", "address", a)
	p.build = build
	p.incarnation++
	n := &Node{
		world: w, place: p, incarnation: p.incarnation,
		id:    gossip.NodeID{Address: a, UID: gossip.UID(w.births.Uint64() | 1)},
		named: make(map[timerKey]int32), processes: make(map[callKey]*strategyProcess),
	}
	n.clock = clock{started: w.now, origin: machine.Instant(w.births.Int64N(int64(time.Hour)))}
	if w.opt.RatePPM > 0 {
		n.clock.ppm = w.births.Int64N(2*int64(w.opt.RatePPM)+1) - int64(w.opt.RatePPM)
	}
	if w.opt.WallSkew > 0 {
		n.clock.wall = time.Duration(w.births.Int64N(2*int64(w.opt.WallSkew)+1)) - w.opt.WallSkew
	}
	n.group = machine.NewGroup(n)
	p.node = n
	env := Env{
		World: w, Self: n.id, Generation: int(p.incarnation) - 1, Clock: systemClock{n},
		Rand: source(w.births.Uint64(), uint64(p.incarnation)), Disk: w.disks.read(p),
	}
	if p.incarnation == 1 {
		w.changes()
	}
	for _, c := range build(env) {
		err := optional.Check(c.Codec, reflect.TypeFor[machine.Codec](), reflect.TypeFor[Release]())
		machine.Assert(err == nil, "a codec is that of a release as a whole", "error", err)
		n.group.Attach(n.Now(), c)
	}
	w.trace.add(line{at: w.now, place: p.index, peer: -1, verb: verbWorld, note: "began"})
	w.observe(n, -1, Started{})
	n.group.Start(n.Now())
	n.stepped()
	return n
}

// Node returns the node that is alive at an address, or nil.
func (w *World) Node(a gossip.Address) *Node {
	if p := w.named[a]; p != nil {
		return p.node
	}
	return nil
}

// Nodes returns the nodes that are alive, in the order in which their addresses were
// first used.
func (w *World) Nodes() []*Node {
	var nodes []*Node
	for _, p := range w.places {
		if p.node != nil {
			nodes = append(nodes, p.node)
		}
	}
	return nodes
}

// Vacant returns the addresses at which a node has lived and no node is alive now.
func (w *World) Vacant() []gossip.Address {
	var vacant []gossip.Address
	for _, p := range w.places {
		if p.node == nil && p.build != nil {
			vacant = append(vacant, p.address)
		}
	}
	return vacant
}

// place returns the place of an address, which it makes if needed.
func (w *World) place(a gossip.Address) *place {
	p := w.named[a]
	if p == nil {
		p = &place{index: int32(len(w.places)), address: a}
		w.places = append(w.places, p)
		w.named[a] = p
	}
	return p
}

// Crashed is the reason in [Ended] for a node that crashed.
const Crashed = "crashed"

// Crash ends the node at an address without any message. If no node is alive there, it
// does nothing.
func (w *World) Crash(a gossip.Address) {
	if n := w.Node(a); n != nil {
		w.end(n, Crashed)
	}
}

// crashCounter counts the messages that a node still sends until it crashes, see [World.CrashWithin].
type crashCounter struct {
	left    int                    // How many messages are still sent.
	matches func(message any) bool // Which messages count; nil: all.
}

// CrashWithin makes the node at an address crash in the middle of a step: after the
// given number of matching messages, the remaining effects of that step are dropped
// and the node ends. Nil matches every message.
func (w *World) CrashWithin(a gossip.Address, sends int, matches func(message any) bool) {
	if n := w.Node(a); n != nil {
		n.crashCounter = &crashCounter{left: max(sends, 1), matches: matches}
		w.Log("%v crashes after %d more messages", n.id, n.crashCounter.left)
	}
}

// countSent counts a message that was sent, and crashes the node when it was the last.
func (n *Node) countSent(message any) {
	if n.crashCounter.matches != nil && !n.crashCounter.matches(message) {
		return
	}
	if n.crashCounter.left--; n.crashCounter.left == 0 {
		n.crashed, n.endReason = true, Crashed
	}
}

// Restart ends the node at an address, if one is alive there, and starts another with
// the build function of the last node there.
func (w *World) Restart(a gossip.Address) *Node {
	p := w.named[a]
	machine.Assert(p != nil && p.build != nil, "a node lived at the address", "address", a)
	w.Crash(a)
	return w.Start(a, p.build)
}

func (w *World) end(n *Node, why string) {
	if n.ended {
		return
	}
	n.ended, n.why, n.frozen = true, why, false
	n.place.node = nil
	w.disks.interrupted(n)
	if why == Crashed {
		w.changes()
	}
	for _, e := range n.waiting {
		w.discard(e)
	}
	n.waiting = nil
	w.trace.add(line{at: w.now, place: n.place.index, peer: -1, verb: verbWorld, note: "ended: " + why})
	w.observe(n, -1, Ended{Why: why})
}

// Freeze stops the node at an address for d, like a process stopped by a signal: its
// events wait, and its clocks go on.
func (w *World) Freeze(a gossip.Address, d time.Duration) {
	n := w.Node(a)
	if n == nil || n.frozen {
		return
	}
	n.frozen = true
	w.changes()
	w.trace.add(line{at: w.now, place: n.place.index, peer: -1, verb: verbWorld, note: "frozen for " + d.String()})
	w.push(event{at: w.now + int64(d), typ: eventThaw, place: n.place.index, incarnation: n.incarnation})
}

// Thaw continues a frozen node at once.
func (w *World) Thaw(a gossip.Address) {
	if n := w.Node(a); n != nil && n.frozen {
		w.thaw(n)
	}
}

// thaw continues a frozen node and feeds the events that waited. A continued process
// finds its timers due and its sockets readable at the same time; the seed decides
// which come first.
func (w *World) thaw(n *Node) {
	if !n.frozen {
		return
	}
	n.frozen = false
	n.thaws++
	n.thawed = w.now
	w.changes()
	waiting := n.waiting
	n.waiting = nil
	w.trace.add(line{at: w.now, place: n.place.index, peer: -1, verb: verbWorld, note: "thawed"})
	if w.faults.Uint64()&1 == 0 {
		slices.SortStableFunc(waiting, func(a, b event) int {
			return cmp.Compare(a.typ, b.typ) // Timers have the lowest type.
		})
	}
	for _, e := range waiting {
		if n.ended {
			w.discard(e)
			continue
		}
		w.handleNodeEvent(n, e)
	}
}

// SetWall moves the wall clock of the node at an address.
func (w *World) SetWall(a gossip.Address, ahead time.Duration) {
	if n := w.Node(a); n != nil {
		n.clock.wall = ahead
		w.changes()
		w.trace.add(line{at: w.now, place: n.place.index, peer: -1, verb: verbWorld, note: "wall ahead by " + ahead.String()})
	}
}

// changes records a change from outside.
func (w *World) changes() {
	w.changed = w.now
}

// Intervene writes a line into the trace and records a change from outside that the world cannot
// see itself, such as a command to a node.
func (w *World) Intervene(format string, values ...any) {
	w.Log(format, values...)
	w.changes()
}

// Steady returns for how long nothing has changed from outside: no fault, no repair,
// no crash, no pause or its end, no new address. Nodes that end by themselves and are
// started again do not count. A steady world may still be split.
func (w *World) Steady() time.Duration { return time.Duration(w.now - w.changed) }

// Quiet returns for how long nothing has changed from outside, and true; or false
// while a fault lasts: a link that is cut, clogged or slow, a loss, a network worse
// than the initial one, a frozen node.
func (w *World) Quiet() (time.Duration, bool) {
	net := w.network
	if len(net.cut) > 0 || len(net.clogged) > 0 || net.Impaired() || slices.ContainsFunc(w.Nodes(), func(n *Node) bool { return n.frozen || n.crashCounter != nil }) {
		return 0, false
	}
	return w.Steady(), true
}
