// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"

	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/downing"
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
	if d := s.JoinDecider; d != nil && r.booting != nil {
		r.booting.bootstrapper.Asked = true
		answers.Answer(protocol.CallJoinDecider, func(_ *simulation.Node, request any) (any, error) {
			return d.Decide(context.Background(), request.(bootstrap.Observations))
		})
	}
}
