// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"sync/atomic"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/transport"
)

// Stats are the counters of a node. They only grow, but for Driver.Waiting.
type Stats struct {
	Unsent      uint64 // Messages that no lane took: the peer refuses, or its window is full.
	Undecodable uint64 // Messages received that meant nothing, or were larger than their sender may send.
	Oversize    uint64 // Those of Undecodable that were too large for who sent them.
	Refused     uint64 // Messages, commands and nodes refused; see [Refused].
	Unheard     uint64 // Refusals by peers that the full inbox had no room for.
	Strangers   uint64 // Frames dropped since who sent them is no member; a few are usual while nodes join and leave.
	Rounds      uint64 // Rounds of gossip that went to a random member, to repair what pushes missed.
	Pushes      uint64 // Times that news was pushed to at least one member.
	Marks       uint64 // Times that this node recorded a member as unreachable.
	Clears      uint64 // Times that it took such a record back, because the member answered again.
	Driver      machine.Stats
	Transport   transport.Counters
}

// counters are what a node counts beside its driver and its transport. Any goroutine
// may count, and read.
type counters struct {
	unsent, undecodable, oversize, refused, unheard atomic.Uint64
	machine                                         latest
}

// latest has the counters of the membership machine as they were after its last step:
// nil before the first one counts something. They are replaced and never changed.
type latest struct {
	counts atomic.Pointer[protocol.Counts]
}

// counted is the membership machine, whose counters other goroutines read.
type counted struct {
	*protocol.Machine

	latest *latest
}

// Step steps the machine, and shows what it has counted. Most steps count nothing.
func (c *counted) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	c.Machine.Step(now, in, out)
	if counts := c.Counts(); counts != c.latest.load() {
		changed := counts // Of its own, so that a step which counts nothing allocates nothing.
		c.latest.counts.Store(&changed)
	}
}

func (l *latest) load() protocol.Counts {
	if counts := l.counts.Load(); counts != nil {
		return *counts
	}
	return protocol.Counts{}
}
