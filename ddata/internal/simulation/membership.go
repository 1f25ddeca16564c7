// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// membershipService is the service at which the world gives inputs to a membership. No message has it.
const membershipService = component.ServiceFirstFree

// membership stands in for package membership on a node: it publishes what the world tells it of the members.
type membership struct {
	self    gossip.NodeID
	version int // Of the state that was published last.
}

// membersState is a state of the members, which replaces all with a lower version.
type membersState struct {
	version int
	state   *gossip.State
	left    map[gossip.NodeID]bool // The removed members that have left in order.
}

// stop ends a node in order.
type stop struct{}

// Step handles an input.
func (r *membership) Step(_ machine.Now, in machine.Input, out *machine.Outbox) {
	if _, ok := in.(stop); ok {
		out.Publish(component.Stopping{Reason: component.StopLeft})
	}
	if s, ok := in.(component.Standing); ok {
		out.Publish(s)
	}
	t, ok := in.(membersState)
	if !ok || t.version <= r.version {
		return
	}
	r.version = t.version
	if _, removed := t.state.Removed(r.self); removed {
		out.Publish(component.Stopping{Reason: component.StopDowned})
		return
	}
	for _, of := range t.state.Tombstones() {
		out.Publish(component.Fenced{Node: of.Node, Graceful: t.left[of.Node]})
	}
	out.Publish(component.Changed{State: t.state, Self: r.self, Leader: t.state.Leader(r.self)})
}
