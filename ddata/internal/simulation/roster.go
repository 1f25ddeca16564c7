// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// rosterService is where a roster is fed by the world. No message travels there.
const rosterService = component.ServiceFirstFree

// roster publishes the members as the world lets its node know them.
type roster struct {
	self    gossip.NodeID
	version int // Of the truth, the last that was published.
}

// truth is a state of the members. The later version is the truer one.
type truth struct {
	version int
	state   *gossip.State
	left    map[gossip.NodeID]bool // Who of the removed has left in order.
}

// stop ends a node in order.
type stop struct{}

// Step handles an input.
func (r *roster) Step(_ machine.Now, in machine.Input, out *machine.Outbox) {
	if _, ok := in.(stop); ok {
		out.Publish(component.Stopping{Reason: component.StopLeft})
	}
	if s, ok := in.(component.Standing); ok {
		out.Publish(s)
	}
	t, ok := in.(truth)
	if !ok || t.version <= r.version {
		return
	}
	r.version = t.version
	if _, removed := t.state.Removed(r.self); removed {
		out.Publish(component.Stopping{Reason: component.StopDowned})
		return
	}
	for _, grave := range t.state.Tombstones() {
		out.Publish(component.Fenced{Node: grave.Node, Graceful: t.left[grave.Node]})
	}
	out.Publish(component.Changed{State: t.state, Self: r.self, Leader: t.state.Leader(r.self)})
}
