// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
)

// Faults at random moments. Chaos draws the next fault and the time until it by the
// seed, injects it, and in the end repairs everything. Below are the usual faults;
// other lists are in faults.go.

// Fault is something that goes wrong, or an action of an operator, at a random moment.
type Fault struct {
	Name   string
	Weight int // How often the fault is drawn, relative to the others.
	Inject func(w *World, r *rand.Rand)
}

// Chaos is a schedule of faults that is drawn from the seed.
type Chaos struct {
	// For is how long faults are injected. After it everything is repaired:
	// links healed, nodes thawed, the network and the calls as before, wall
	// clocks right, and crashed nodes started again.
	For time.Duration

	// Every is the mean time between faults; each interval is drawn evenly from half
	// of Every to one and a half of it.
	Every time.Duration

	// Faults are the faults to draw from, by weight. The function [Faults] returns the
	// usual list.
	Faults []Fault

	// Unrepaired says that nothing is repaired when the time is over: links that were
	// cut stay cut until the caller heals them. Only no further fault is injected.
	Unrepaired bool
}

// Chaos injects random faults from now on. Which faults are injected and when depends
// on the seed alone. The caller lets c.For pass, then as much time as the cluster may
// take to recover, and checks that it has.
func (w *World) Chaos(c Chaos) {
	total := 0
	for _, f := range c.Faults {
		total += f.Weight
	}
	if total == 0 || c.Every <= 0 {
		return
	}
	delivery, calls, at := w.network.delivery, w.strategies.usual, maps.Clone(w.strategies.at)
	end := w.Now() + c.For
	var strike func()
	strike = func() {
		if w.Now() >= end {
			return
		}
		drawn := w.faults.IntN(total)
		for _, f := range c.Faults {
			if drawn -= f.Weight; drawn < 0 {
				w.Log("fault %s", f.Name)
				if w.injected == nil {
					w.injected = make(map[string]int)
				}
				w.injected[f.Name]++
				w.changes()
				f.Inject(w, w.faults)
				break
			}
		}
		w.After(between(w.faults, c.Every/2, c.Every*3/2), strike)
	}
	w.After(between(w.faults, 0, c.Every), strike)
	if c.Unrepaired {
		return
	}
	w.At(end, func() {
		w.network.delivery, w.strategies.usual, w.strategies.at = delivery, calls, at
		w.Repair()
	})
}

// FaultCount is how often a fault was injected, or an outcome of calls drawn.
type FaultCount struct {
	Name  string `json:"name"`
	Times int    `json:"times"`
}

// Injected returns the faults that [World.Chaos] injected, by name.
func (w *World) Injected() []FaultCount {
	return counted(w.injected)
}

// counted lists counts by name.
func counted(counts map[string]int) []FaultCount {
	list := make([]FaultCount, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, FaultCount{name, counts[name]})
	}
	return list
}

// Repair heals every link, thaws every node, sets every wall clock right, and
// starts a node at every vacant address.
func (w *World) Repair() {
	w.network.Heal()
	for _, n := range w.Nodes() {
		n.clock.wall = 0
		w.thaw(n)
	}
	for _, a := range w.Vacant() {
		w.Restart(a)
	}
}

// Faults returns the usual faults: splits in two and three sides, single
// links cut in one direction, heals, crashes, restarts, freezes from 0.5 to
// 15 s, bursts of loss, of lateness, of doubling, and jumps of wall clocks.
func Faults() []Fault {
	return []Fault{
		{"split", 4, splitFault},
		{"isolate", 3, isolateFault},
		{"one-way", 3, oneWayFault},
		{"heal", 5, func(w *World, _ *rand.Rand) { w.network.Heal() }},
		{"crash", 2, func(w *World, r *rand.Rand) { withNode(w, r, func(n *Node) { w.Crash(n.place.address) }) }},
		{"restart", 2, func(w *World, r *rand.Rand) { withNode(w, r, func(n *Node) { w.Restart(n.place.address) }) }},
		{"revive", 5, reviveFault},
		{"freeze", 4, func(w *World, r *rand.Rand) {
			withNode(w, r, func(n *Node) { w.Freeze(n.place.address, between(r, 500*time.Millisecond, 15*time.Second)) })
		}},
		{"loss", 2, func(w *World, r *rand.Rand) { burst(w, r, Delivery{Loss: 0.3 * r.Float64()}) }},
		{"late", 2, func(w *World, r *rand.Rand) {
			burst(w, r, Delivery{Late: 0.3 * r.Float64(), LateMax: between(r, 0, 4*time.Second)})
		}},
		{"double", 1, func(w *World, r *rand.Rand) { burst(w, r, Delivery{Double: 0.3 * r.Float64()}) }},
		{"wall", 1, func(w *World, r *rand.Rand) {
			withNode(w, r, func(n *Node) { w.SetWall(n.place.address, between(r, 0, 2*time.Hour)-time.Hour) })
		}},
	}
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

func withNode(w *World, r *rand.Rand, f func(*Node)) {
	if nodes := w.Nodes(); len(nodes) > 0 {
		f(nodes[r.IntN(len(nodes))])
	}
}

// splitFault deals all addresses out to two sides or, one time in four, to three.
func splitFault(w *World, r *rand.Rand) {
	sides := make([][]gossip.Address, 2)
	if r.IntN(4) == 0 {
		sides = make([][]gossip.Address, 3)
	}
	for _, p := range w.places {
		side := r.IntN(len(sides))
		sides[side] = append(sides[side], p.address)
	}
	w.network.Split(sides...)
}

// isolateFault cuts one node off from all others.
func isolateFault(w *World, r *rand.Rand) {
	withNode(w, r, func(n *Node) {
		var others []gossip.Address
		for _, p := range w.places {
			if p != n.place {
				others = append(others, p.address)
			}
		}
		w.network.Split([]gossip.Address{n.place.address}, others)
	})
}

// oneWayFault cuts one to three links in one direction.
func oneWayFault(w *World, r *rand.Rand) {
	for range 1 + r.IntN(3) {
		from, to := w.places[r.IntN(len(w.places))], w.places[r.IntN(len(w.places))]
		w.Log("cut %v -> %v", from.address, to.address)
		w.network.Cut(from.address, to.address)
	}
}

func reviveFault(w *World, r *rand.Rand) {
	if vacant := w.Vacant(); len(vacant) > 0 {
		w.Restart(vacant[r.IntN(len(vacant))])
	}
}

// burst changes the network for 1 to 10 seconds. Bursts do not add up: the latest
// replaces those before, and the end of any burst restores the network.
func burst(w *World, r *rand.Rand, c Delivery) {
	normal := w.network.delivery
	normal.Loss, normal.Late, normal.LateMax, normal.Double = 0, 0, 0, 0
	c.Min, c.Max, c.Ordered = normal.Min, normal.Max, normal.Ordered
	w.network.SetDelivery(c)
	w.After(between(r, time.Second, 10*time.Second), func() { w.network.SetDelivery(normal) })
}

// String returns the name and the weight.
func (f Fault) String() string { return fmt.Sprintf("%s×%d", f.Name, f.Weight) }
