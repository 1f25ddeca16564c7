// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"sync/atomic"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/transport"
)

// Stats are the counters of a node. They only grow, except Driver.Waiting.
type Stats struct {
	Unsent      uint64 // Messages that no lane took: the peer refuses, or its window is full.
	Undecodable uint64 // Messages received that could not be decoded, or were larger than their sender may send.
	Oversize    uint64 // Messages of Undecodable that were too large for their sender.
	Refused     uint64 // Messages, commands and nodes refused; see [Refused].
	Unheard     uint64 // Refusals by peers that found the inbox full.
	Strangers   uint64 // Frames dropped because their sender is no member; a few are usual while nodes join and leave.
	Rounds      uint64 // Rounds of gossip that had a random member compare its state, to repair what pushes missed.
	Pushes      uint64 // Pushes of news to at least one member.
	Marks       uint64 // Members that this node recorded as unreachable.
	Clears      uint64 // Unreachable records that this node took back because the member answered again.
	Driver      machine.Stats
	Transport   transport.Counters
}

// counters are what a node counts itself, besides its driver and its transport. Any
// goroutine may count and read.
type counters struct {
	unsent, refused atomic.Uint64
	machine         latestCounts
}

// latestCounts has the counters of the membership machine after its last step, nil before the
// machine has counted anything. They are replaced and never changed.
type latestCounts struct {
	counts atomic.Pointer[protocol.Counts]
}

// countedMachine is the membership machine with counters that other goroutines can read.
type countedMachine struct {
	*protocol.Machine

	latest *latestCounts
}

// Step steps the machine, and publishes its counters if they changed. Most steps count
// nothing.
func (c *countedMachine) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	c.Machine.Step(now, in, out)
	if counts := c.Counts(); counts != c.latest.load() {
		changed := counts // A variable of its own, so that a step that counts nothing allocates nothing.
		c.latest.counts.Store(&changed)
	}
}

func (l *latestCounts) load() protocol.Counts {
	if counts := l.counts.Load(); counts != nil {
		return *counts
	}
	return protocol.Counts{}
}
