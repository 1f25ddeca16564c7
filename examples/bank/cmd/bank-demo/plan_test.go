// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPlanKeepsAMajority goes through the plans of many seeds: each has every
// action once, never has fewer than three members to lose a node from, never
// more nodes than there are addresses for, and ends in time.
func TestPlanKeepsAMajority(t *testing.T) {
	orders := map[action]bool{}
	for seed := range uint64(1000) {
		steps := plan(seed)
		members, started := firstNodes, firstNodes
		var quiet time.Duration
		var actions []action
		for _, s := range steps {
			quiet += s.after
			actions = append(actions, s.what)
			require.GreaterOrEqual(t, s.after, 2*time.Second)
			if s.what == startTwo {
				members, started = members+2, started+2
				continue
			}
			// The rest is a majority of what was, and each step is waited for.
			require.GreaterOrEqual(t, members, 3, "seed %d: %v", seed, actions)
			members--
			require.Greater(t, 2*members, members+1)
		}
		require.LessOrEqual(t, started, maxNodes)
		require.Less(t, quiet, 20*time.Second)
		slices.Sort(actions)
		require.Equal(t, []action{killPlain, killOldest, leaveOne, startTwo}, actions)
		orders[steps[0].what] = true
	}
	require.Len(t, orders, 4, "the seed decides what comes first")
}

// TestPlanDependsOnTheSeedAlone shows that a run can be repeated.
func TestPlanDependsOnTheSeedAlone(t *testing.T) {
	first, second := plan(7), plan(7)
	require.Equal(t, first, second)
	require.NotEqual(t, first, plan(8))
}
