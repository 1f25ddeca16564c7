// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/machine"
)

// The asks that end by themselves at their deadlines ([Ask.Limited]) have one timer for all
// of a node. An ask does nothing for it but remember its deadline: a slot stands in the list
// with the earliest of its deadlines, enters the list with an ask that finds it outside, and
// stays until the timer has rung for it. Asks that were answered meanwhile are gone from the
// table then. So an ask that is answered in time costs a comparison.
//
//	accepted ──> bound: the slot enters the list ──> timer ──> ring ──> endLimited
//	                 ^                                                       │
//	                 └────────── the earliest deadline that is left ─────────┘

// deadlinesApart is the least time between two looks at the asks of a slot, so that many
// asks that end one after the other have the table looked through so often only. The later
// ones end late by this much at most.
const deadlinesApart = 10 * time.Millisecond

// deadlines are the slots with asks that end by themselves. The timer belongs to the node,
// and ends with it.
type deadlines struct {
	mu    sync.Mutex // Guards all fields below. Taken with the lock of a slot held, and never the other way round.
	slots []dueSlot  // By time, the latest first.
	timer Timer      // Rings at the time of the last of slots; made at first use.
	ended bool       // The node has ended: nothing is added.
}

// dueSlot is a slot, and when the first of its asks ends by itself.
type dueSlot struct {
	at   machine.Instant
	slot *Slot
}

// add has a slot looked at when its next ask ends.
func (d *deadlines) add(n *Node, sl *Slot, at, now machine.Instant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return
	}
	i, _ := slices.BinarySearchFunc(d.slots, at, func(e dueSlot, at machine.Instant) int { return cmp.Compare(at, e.at) })
	d.slots = slices.Insert(d.slots, i, dueSlot{at, sl})
	if i == len(d.slots)-1 {
		d.arm(n, now)
	}
}

// arm sets the timer to the time of the first slot. The caller holds d.mu.
func (d *deadlines) arm(n *Node, now machine.Instant) {
	if len(d.slots) == 0 {
		return
	}
	after := max(d.slots[len(d.slots)-1].at.Sub(now), 0)
	if d.timer == nil {
		d.timer = n.Ports.AfterFunc(after, func() { d.ring(n) })
		return
	}
	d.timer.Reset(after)
}

// take removes the slots that are due, and sets the timer for the next one.
func (d *deadlines) take(n *Node, now machine.Instant) []dueSlot {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := len(d.slots)
	for first > 0 && d.slots[first-1].at <= now {
		first--
	}
	taken := slices.Clone(d.slots[first:])
	d.slots = slices.Delete(d.slots, first, len(d.slots))
	if !d.ended {
		d.arm(n, now)
	}
	return taken
}

// end stops the timer for good.
func (d *deadlines) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended, d.slots = true, nil
	if d.timer != nil {
		d.timer.Stop()
	}
}

// ring ends the asks of all slots whose deadlines have passed. The timer calls it.
func (d *deadlines) ring(n *Node) {
	for _, e := range slices.Backward(d.take(n, n.Ports.Clock.Instant())) { // The earliest is the last.
		e.slot.endLimited(e.at)
	}
}
