// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"slices"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// Strategies decide in a run in place of those of its scenario: strategies of a program, or
// plugins. They are asked as nodes ask what may block, take no virtual time, and are called by
// the goroutine of the run, one call at a time. A nil field leaves the scenario its own.
//
// A run is a function of its options only as far as its strategies are functions of what they
// are asked.
type Strategies struct {
	Downing     downing.Provider
	JoinDecider bootstrap.JoinDecider // Of the scenario "bootstrap"; the others join seed nodes.

	// Discovery finds the nodes of the scenario "bootstrap": the contact point that it was first seen to
	// name stands for the first node, the next one for the second, and so on. It is asked when
	// an answer is to be right; the answers that are not are those of the scenario.
	Discovery discovery.Discovery
}

// nodesFound returns a function that looks contact points up and returns the simulated nodes for which
// they stand, in the order in which they were first seen. Contact points beyond the last node stand for
// none.
func nodesFound(d discovery.Discovery, nodes []gossip.Address) func() ([]gossip.Address, error) {
	numbers := make(map[discovery.Target]int)
	return func() ([]gossip.Address, error) {
		found, err := d.Lookup(context.Background(), discovery.Query{Service: "quorate"})
		if err != nil {
			return nil, err
		}
		slices.SortFunc(found.List, discovery.Target.Compare)
		var list []gossip.Address
		for _, t := range found.List {
			number, known := numbers[t]
			if !known {
				number = len(numbers)
				numbers[t] = number
			}
			if number < len(nodes) {
				list = append(list, nodes[number])
			}
		}
		return list, nil
	}
}

// serve has the nodes of a run ask the strategies.
func (s *Strategies) serve(r *run) {
	answers := r.world.Strategies()
	if p := s.Downing; p != nil {
		config := downing.Default()
		config.Strategy = "tried"
		r.downing = protocol.Downing{Config: config, Class: p.Class()}
		answers.Answer(protocol.CallDowning, func(_ *simulation.Node, request any) (any, error) {
			return p.Decide(context.Background(), request.(protocol.DowningRequest).View)
		})
		answers.Garble(protocol.CallDowning, membershipsim.GarbleDowning(p.Class()))
	}
	if d := s.JoinDecider; d != nil && r.bootstrapWorld != nil {
		r.bootstrapWorld.bootstrap.Asked = true
		answers.Answer(protocol.CallJoinDecider, func(_ *simulation.Node, request any) (any, error) {
			return d.Decide(context.Background(), request.(bootstrap.Observations))
		})
	}
}
