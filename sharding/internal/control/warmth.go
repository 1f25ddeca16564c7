// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// The slow start of a region that joins others: its part of the shards rises by steps, so that
// its caches and pools warm up under a part of the load. Every strategy that goes by capacities
// obeys, since it is the capacities of its requests that say it.

// warmth is the part of a roster that knows how long regions have been there. Invariants,
// between steps:
//
//	W1  while the region that came first stays, the part of no region falls, so that a slow start
//	    never moves a shard away from the region that starts;
//	W2  a region that came while none had been there for the time of a slow start has its whole
//	    part: a cluster that starts, starts at once.
type warmth struct {
	shared
	came map[gossip.NodeID]machine.Instant // When the region of a node came, by this node's clock.
}

// noted takes the age of a region from its registration. One that does not say has been there for
// long. What was under way for longer says less, so that the earliest time is nearest the truth.
func (w *warmth) noted(node gossip.NodeID, age time.Duration) {
	if age <= 0 {
		age = MaxAge
	}
	at, known := w.came[node]
	if since := w.now().Add(-age); !known || since < at {
		w.came[node] = since
	}
}

func (w *warmth) forget(node gossip.NodeID) { delete(w.came, node) }

// The part of its capacity, in percent, with which a region starts, and the steps in which the
// part rises.
const (
	coldPercent = 10
	stepPercent = 10
	fullPercent = 100
)

// percent returns the part of its capacity that a region is to have now.
func (w *warmth) percent(node gossip.NodeID) uint64 {
	at, slow := w.came[node], w.kind.timings.SlowStart
	age := w.now().Sub(at)
	if slow <= 0 || age >= slow || at < w.first().Add(slow) {
		return fullPercent
	}
	risen := uint64(coldPercent) + uint64(fullPercent-coldPercent)*uint64(max(age, 0))/uint64(slow)
	return risen - risen%stepPercent
}

// first returns when the first of the regions came.
func (w *warmth) first() machine.Instant {
	first := machine.Never
	for _, at := range w.came { //quorate:unordered a minimum
		first = min(first, at)
	}
	return first
}

// starting says in words that a region starts slowly, empty if it does not.
func (w *warmth) starting(node gossip.NodeID) string {
	if p := w.percent(node); p < fullPercent {
		return fmt.Sprintf("%s starts with %d%% of its part, which rises for %v", node, p, w.kind.timings.SlowStart)
	}
	return ""
}

// scale sets the capacities of the regions of a request to the parts that they are to have now,
// and their loads to parts of these.
// They are in the proportions that count, so that nothing changes while no region starts. The
// products stay below [allocation.CapacityMax], where the steps of small capacities vanish beside
// capacities near it.
func (w *warmth) scale(all []allocation.RegionState, nodes []gossip.NodeID) {
	percents, starts := make([]uint64, len(all)), false
	most := uint64(1)
	for i := range all {
		percents[i] = w.percent(nodes[i])
		starts = starts || percents[i] < fullPercent
		most = max(most, capacityOf(&all[i]))
	}
	if !starts {
		return
	}
	times := min(fullPercent, max(1, allocation.CapacityMax/most))
	for i := range all {
		all[i].Capacity = uint32(max(1, capacityOf(&all[i])*times*percents[i]/fullPercent))
		all[i].Load = min(all[i].Load*fullPercent/float64(percents[i]), 1)
	}
}

// capacityOf returns a capacity within the bounds that strategies give it.
func capacityOf(r *allocation.RegionState) uint64 {
	return uint64(min(max(r.Capacity, 1), allocation.CapacityMax))
}
