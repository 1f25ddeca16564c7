// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"fmt"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// ward is a component that hosts something as long as its node may.
type ward struct{ until machine.Instant }

// Step handles the events that a node publishes to its components.
func (w *ward) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	switch in := in.(type) {
	case component.Standing:
		w.until = in.Until
	case component.Fenced:
		fmt.Println("takes over what was on", in.Node.Address, "may host:", now.Mono <= w.until)
	case component.Stopping:
		out.Publish(component.Drained{Component: "ward"})
		fmt.Println("stops, because the node has", in.Reason)
	}
}

// A component that takes over from members that can no longer host. Here the events
// are fed by hand; in a node they come from the node.
func Example() {
	var out machine.Outbox
	gone := gossip.NodeID{Address: gossip.Address{Host: "10.0.0.7", Port: 7946}, UID: 1}
	w := new(ward)
	w.Step(machine.Now{Mono: 10}, component.Standing{Until: 100}, &out)
	w.Step(machine.Now{Mono: 20}, component.Fenced{Node: gone}, &out)
	w.Step(machine.Now{Mono: 30}, component.Stopping{Reason: component.StopLeft}, &out)
	// Output:
	// takes over what was on 10.0.0.7:7946 may host: true
	// stops, because the node has left
}
