// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPlanKeepsAMajority goes through the plans of many seeds: each has every
// action once, never has fewer than three members to lose a node from, never
// more nodes than there are addresses for, and leaves time for the actions.
func TestPlanKeepsAMajority(t *testing.T) {
	orders := map[action]bool{}
	for seed := range uint64(1000) {
		steps := plan(seed, actions())
		members, addresses := firstNodes, firstNodes
		var quiet time.Duration
		var seen []action
		for _, s := range steps {
			quiet += s.after
			seen = append(seen, s.what)
			require.GreaterOrEqual(t, s.after, time.Second)
			switch s.what {
			case startTwo:
				members, addresses = members+2, addresses+2
				continue
			case restartAll:
				require.GreaterOrEqual(t, members, 4, "seed %d: %v", seed, seen)
				continue
			case freezeOne:
				addresses++
			case killPlain, killOldest, leaveOne:
				// With three members a step leaves a majority of them. The demo waits for each
				// step before it begins the next.
				require.GreaterOrEqual(t, members, 3, "seed %d: %v", seed, seen)
				members--
				continue
			default:
			}
			require.GreaterOrEqual(t, members, 3, "seed %d: %v", seed, seen)
		}
		require.LessOrEqual(t, addresses, maxNodes)
		require.Less(t, quiet, 20*time.Second)
		require.ElementsMatch(t, actions(), seen)
		orders[steps[0].what] = true
	}
	require.Len(t, orders, len(actions()), "the seed decides what comes first")
}

// TestPlanDependsOnTheSeedAlone shows that a run can be repeated.
func TestPlanDependsOnTheSeedAlone(t *testing.T) {
	first, second := plan(7, actions()), plan(7, actions())
	require.Equal(t, first, second)
	require.NotEqual(t, first, plan(8, actions()))
}

// TestEveryChoiceOfPhasesHasAPlan plans every subset of the actions.
func TestEveryChoiceOfPhasesHasAPlan(t *testing.T) {
	all := actions()
	for bits := range 1 << len(all) {
		var chosen []action
		for i, a := range all {
			if bits>>i&1 == 1 {
				chosen = append(chosen, a)
			}
		}
		var planned []action
		for _, s := range plan(1, chosen) {
			planned = append(planned, s.what)
		}
		require.ElementsMatch(t, chosen, planned)
	}
}

// TestARunWithDefaultSettingsIsShort shows that it leaves out what another phase shows too, and still kills, freezes,
// restarts, drains and changes the number of shards where the system allows that.
func TestARunWithDefaultSettingsIsShort(t *testing.T) {
	want := []action{killOldest, restartAll}
	if canFreeze {
		want = append(want, freezeOne)
	}
	if canOperate {
		want = append(want, drainOne, reshardOne)
	} else {
		want = append(want, killPlain)
	}
	require.ElementsMatch(t, want, showing(false))
	for seed := range uint64(100) {
		var quiet time.Duration
		for _, s := range plan(seed, showing(false)) {
			quiet += s.after
		}
		require.LessOrEqual(t, quiet, 10*time.Second)
	}
}

// TestPhasesAreChosenByName reads the phases from a command line.
func TestPhasesAreChosenByName(t *testing.T) {
	chosen, err := parsePhases("rolling_restart, kill", false)
	require.NoError(t, err)
	require.Equal(t, []action{restartAll, killPlain}, chosen)
	chosen, err = parsePhases("all", false)
	require.NoError(t, err)
	require.Equal(t, actions(), chosen)
	chosen, err = parsePhases("", false)
	require.NoError(t, err)
	require.Equal(t, showing(false), chosen)
	_, err = parsePhases("kill,earthquake", false)
	require.ErrorContains(t, err, `"earthquake" is not known here`)
	chosen, err = parsePhases("", true)
	require.NoError(t, err)
	require.Contains(t, chosen, harm)
	_, err = parsePhases("plugins", false)
	require.ErrorContains(t, err, "not known here")
	_, err = parsePhases("kill,kill", false)
	require.ErrorContains(t, err, "named twice")
}
