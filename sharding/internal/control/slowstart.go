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

// slowStart is the part of the regions that knows how long regions have been there. Invariants,
// between steps:
//
//	W1  while the region that came first stays, the part of no region falls, so that a slow start
//	    never moves a shard away from the region that starts;
//	W2  a region that came while none had been there for the time of a slow start has its whole
//	    part: a cluster that starts, starts at once.
type slowStart struct {
	env
	came map[gossip.NodeID]machine.Instant // When the region of a node came, by this node's clock.
}

// noted records the age that a region's registration gives. A region that gives none has been there for long. A
// registration that was under way for longer gives a lower age, so the earliest time is nearest the truth.
func (s *slowStart) noted(node gossip.NodeID, age time.Duration) {
	if age <= 0 {
		age = MaxAge
	}
	at, known := s.came[node]
	if since := s.now().Add(-age); !known || since < at {
		s.came[node] = since
	}
}

func (s *slowStart) forget(node gossip.NodeID) { delete(s.came, node) }

// The part of its capacity, in percent, with which a region starts, and the steps in which the
// part rises.
const (
	coldPercent = 10
	stepPercent = 10
	fullPercent = 100
)

// percent returns the part of its capacity that a region is to have now.
func (s *slowStart) percent(node gossip.NodeID) uint64 {
	at, slow := s.came[node], s.kind.timings.SlowStart
	age := s.now().Sub(at)
	if slow <= 0 || age >= slow || at < s.first().Add(slow) {
		return fullPercent
	}
	risen := uint64(coldPercent) + uint64(fullPercent-coldPercent)*uint64(max(age, 0))/uint64(slow)
	return risen - risen%stepPercent
}

// first returns when the first of the regions came.
func (s *slowStart) first() machine.Instant {
	first := machine.Never
	for _, at := range s.came { //quorate:unordered a minimum
		first = min(first, at)
	}
	return first
}

// starting says in words that a region starts slowly, empty if it does not.
func (s *slowStart) starting(node gossip.NodeID) string {
	if p := s.percent(node); p < fullPercent {
		return fmt.Sprintf("%s starts with %d%% of its part, which rises for %v", node, p, s.kind.timings.SlowStart)
	}
	return ""
}

// scale sets the capacities of the regions of a request to the parts that they are to have now,
// and their loads to parts of these.
// They are in the proportions that count, so that nothing changes while no region starts. The
// products stay below [allocation.MaxCapacity], where the steps of small capacities vanish beside
// capacities near it.
func (s *slowStart) scale(all []allocation.RegionState, nodes []gossip.NodeID) {
	percents, starts := make([]uint64, len(all)), false
	most := uint64(1)
	for i := range all {
		percents[i] = s.percent(nodes[i])
		starts = starts || percents[i] < fullPercent
		most = max(most, capacityOf(&all[i]))
	}
	if !starts {
		return
	}
	times := min(fullPercent, max(1, allocation.MaxCapacity/most))
	for i := range all {
		all[i].Capacity = uint32(max(1, capacityOf(&all[i])*times*percents[i]/fullPercent))
		all[i].Load = min(all[i].Load*fullPercent/float64(percents[i]), 1)
	}
}

// capacityOf returns a capacity within the bounds that strategies give it.
func capacityOf(r *allocation.RegionState) uint64 {
	return uint64(min(max(r.Capacity, 1), allocation.MaxCapacity))
}
