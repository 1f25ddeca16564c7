// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
)

// Examine is the input that asks for an [Examined]. It changes nothing. Counters
// need no question: [Machine.Counts] has them after each step.
type Examine struct {
	// ID is given back in the answer.
	ID uint64
}

// Examined is published to answer an [Examine]: what the failure detectors hold now.
type Examined struct {
	ID uint64
	// Monitored is what the failure detectors hold about each node that gets
	// heartbeats, sorted by node.
	Monitored []fd.Status[gossip.NodeID]
}

// Counts are the counters of a machine since it was created. They only grow.
type Counts struct {
	Rounds uint64 // Gossip rounds that had a random member compare its state with that of this node.
	Pushes uint64 // Pushes of news to at least one member.
	Marks  uint64 // Members that this node recorded as unreachable.
	Clears uint64 // Unreachable records that this node took back because the member answered again.
	// Refused are the refusals by reason, those without an event [Refused] included.
	Refused [RefusalLast + 1]uint64
}

// Counts returns a copy of the counters after the last step, which later steps leave as
// it is.
func (m *Machine) Counts() Counts { return m.counts }

// examine answers an [Examine].
func (m *Machine) examine(in Examine) {
	m.out.Publish(Examined{ID: in.ID, Monitored: m.Monitored()})
}

// Monitored returns what the failure detectors held at the last step, sorted by node.
func (m *Machine) Monitored() []fd.Status[gossip.NodeID] {
	return m.monitoring.registry.Status(m.now.Mono.Time())
}
