// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/simulation"
)

// sentry calls another sentry each second, and publishes the name of one that was
// silent for more than two seconds.
type sentry struct {
	other gossip.Address
	heard machine.Instant
}

type call struct{}

func (s *sentry) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	switch in.(type) {
	case machine.Started:
		s.heard = now.Mono
	case machine.Received:
		s.heard = now.Mono
		return
	}
	out.Arm("call", now.Mono.Add(time.Second))
	out.Send(gossip.NodeID{Address: s.other}, call{})
	if silent := now.Mono.Sub(s.heard); silent > 2*time.Second {
		out.Publish(fmt.Sprintf("%s is silent", s.other.Host))
	}
}

// Two nodes with one component each. For four seconds messages from west do not reach
// east, so that east complains and west does not.
func Example() {
	west, east := gossip.Address{Host: "west", Port: 1}, gossip.Address{Host: "east", Port: 1}
	w := simulation.New(simulation.Options{Seed: 7})
	start := func(at, other gossip.Address) {
		w.Start(at, func(simulation.Env) []machine.Component {
			return []machine.Component{{Name: "sentry", Service: component.ServiceFirstFree, Machine: &sentry{other: other}}}
		})
	}
	start(west, east)
	start(east, west)
	w.Observe(func(o simulation.Observation) {
		if text, ok := o.Event.(string); ok {
			fmt.Printf("%v %s: %s\n", o.At.Truncate(time.Second), o.Node.ID().Address.Host, text)
		}
	})
	w.At(10*time.Second+time.Second/2, func() { w.Network().Cut(west, east) })
	w.At(14*time.Second+time.Second/2, w.Network().Heal)
	if err := w.Run(time.Minute); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 13s east: west is silent
	// 14s east: west is silent
	// 15s east: west is silent
}
