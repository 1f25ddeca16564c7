// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/membership/membershipsim/scenario"
)

// counted is keep-majority that counts what it is asked.
type counted struct {
	downing.KeepMajority

	asked int
}

func (c *counted) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	c.asked++
	return c.KeepMajority.Decide(ctx, v)
}

// selfish is a provider that keeps every side, whatever its class says, and says so.
type selfish struct{ class downing.Class }

func (s selfish) Class() downing.Class { return s.class }

func (selfish) Decide(_ context.Context, v downing.View) (downing.Decision, error) {
	d := downing.Decision{Verdict: downing.KeepSide, Reason: "mine"}
	for _, m := range v.Side().Lost() {
		d.Down = append(d.Down, m.Node)
	}
	return d, nil
}

// hasty forms a cluster at once, and joins none.
type hasty struct{ asked int }

func (h *hasty) Decide(context.Context, bootstrap.Observations) (bootstrap.Decision, error) {
	h.asked++
	return bootstrap.Decision{Action: bootstrap.Form, Reason: "why wait"}, nil
}

func TestAProviderDecidesInARun(t *testing.T) {
	p := &counted{}
	_, err := scenario.Run(scenario.Options{Scenario: "split", Nodes: 5, Seed: 1, Strategies: scenario.Strategies{Downing: p}})
	require.NoError(t, err)
	require.NotZero(t, p.asked)
}

// A provider that keeps both sides of a split is found out. One that promises to keep
// majorities only does no harm: its decisions are refused.
func TestAProviderThatKeepsBothSidesIsFoundOut(t *testing.T) {
	_, err := scenario.Run(scenario.Options{Scenario: "split", Nodes: 5, Seed: 0, Strategies: scenario.Strategies{Downing: selfish{}}})
	require.ErrorContains(t, err, "is fenced")
	_, err = scenario.Run(scenario.Options{
		Scenario: "split", Nodes: 5, Seed: 0, Strategies: scenario.Strategies{Downing: selfish{downing.Class{MajorityOnly: true}}},
	})
	require.NoError(t, err)
}

// A decider that forms against the rules forms no second cluster: the node does so with the votes
// of the others only. But if it never joins, there is no cluster of all in the end.
func TestADeciderDecidesInARun(t *testing.T) {
	d := &hasty{}
	_, err := scenario.Run(scenario.Options{Scenario: "bootstrap", Nodes: 3, Seed: 1, Strategies: scenario.Strategies{JoinDecider: d}})
	require.NotZero(t, d.asked)
	require.ErrorContains(t, err, "not settled")
}
