// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// measureSimulated measures how long, in virtual time, a cluster takes to form whose
// nodes start at the same moment.
func measureSimulated(_ context.Context, s rig.Spec, _ *rig.Link) (figure.Outcome, error) {
	began := time.Now()
	w := simulation.New(simulation.Options{Seed: 1, RatePPM: 10_000})
	membershipsim.Serve(w)
	(&membershipsim.Invariants{}).Watch(w)
	var seeds []gossip.Address
	for i := range min(s.Nodes, 3) {
		seeds = append(seeds, simulatedAddress(i))
	}
	(&membershipsim.Operator{Seeds: seeds, RestartAfter: 2 * time.Second}).Operate(w)
	component := membershipsim.Component(membershipsim.Config{})
	for i := range s.Nodes {
		w.Start(simulatedAddress(i), func(env simulation.Env) []machine.Component {
			return []machine.Component{component(env)}
		})
	}
	formed, err := w.RunUntil(2*time.Minute, func() bool { return membershipsim.Settled(w) == nil })
	if err != nil {
		return figure.Outcome{}, errors.Join(err, membershipsim.Settled(w))
	}
	return figure.Outcome{Values: map[string]float64{"formed": formed.Seconds(), "wall": time.Since(began).Seconds()}}, nil
}

// simulatedAddress is the address of the i-th simulated node.
func simulatedAddress(i int) gossip.Address {
	return gossip.Address{Host: fmt.Sprintf("n%d", i), Port: 7946}
}
