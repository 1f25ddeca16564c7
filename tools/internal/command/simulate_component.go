// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/quorate/quorate/cluster/locations/locationssim"
	"github.com/quorate/quorate/ddata/ddatasim"
	"github.com/quorate/quorate/gateway/gatewaysim"
	"github.com/quorate/quorate/membership/membershipsim/scenario"
	"github.com/quorate/quorate/sharding/delivery/deliverysim"
	"github.com/quorate/quorate/sharding/reminder/remindersim"
	"github.com/quorate/quorate/sharding/shardingsim"
	"github.com/quorate/quorate/sharding/state/statesim"
	"github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/tools/soak"
)

// components returns the scenarios of what runs on membership.
func components() []simulation.Scenario {
	return slices.Concat(
		shardingsim.Scenarios(), statesim.Scenarios(), deliverysim.Scenarios(), remindersim.Scenarios(),
		ddatasim.Scenarios(), gatewaysim.Scenarios(), locationssim.Scenarios(),
	)
}

// run runs the scenario of its name, or the recorded one.
func (c *Simulation) run(o scenario.Options) (scenario.Result, error) {
	all := components()
	if i := slices.IndexFunc(all, func(s simulation.Scenario) bool { return s.Name == o.Scenario }); i >= 0 && o.Replay == nil {
		return c.runComponent(all[i], o)
	}
	return scenario.Run(o)
}

// runComponent runs a scenario of sharding, of distributed data, of clients or of locations.
func (c *Simulation) runComponent(s simulation.Scenario, o scenario.Options) (result scenario.Result, err error) {
	switch {
	case o.Nodes < soak.NodesLeast || o.Nodes > maxSoakNodes:
		return result, fmt.Errorf("scenario: %d nodes: want %d to %d for %s", o.Nodes, soak.NodesLeast, maxSoakNodes, s.Name)
	case o.Duration != 0 || o.Settle != 0:
		return result, fmt.Errorf("scenario: %s has a duration and a time to settle of its own", s.Name)
	case o.Record != nil:
		return result, fmt.Errorf("scenario: %s cannot be recorded: its disks answer calls and are part of the world; the seed repeats it", s.Name)
	}
	failure := (*simulation.Failure)(nil)
	defer func() { // A machine asserts its invariants, also while a world is built.
		if v := recover(); v != nil {
			err = &simulation.Failure{
				Seed: o.Seed, Scenario: fmt.Sprintf("%s -nodes %d", s.Name, o.Nodes), Err: fmt.Errorf("panic: %v\n%s", v, debug.Stack()),
			}
		}
	}()
	w, err := s.Run(o.Seed, o.Nodes, func(w *simulation.Options) { w.Trace, w.Begin = o.Trace, o.Begin })
	if err != nil && !errors.As(err, &failure) {
		w.Fail(err) // The cluster has not recovered.
		err = w.Failure()
	}
	if err != nil {
		return result, err
	}
	return scenario.Result{
		Scenario: s.Name, Seed: o.Seed, Nodes: o.Nodes, Virtual: w.Now(), Members: len(w.Nodes()), Stats: w.Stats(),
		Lines: w.Trace().Count(), Hash: w.Trace().Hash(), Faults: w.Injected(), Outcomes: w.Strategies().Outcomes(), Replay: w.Replay(),
	}, nil
}
