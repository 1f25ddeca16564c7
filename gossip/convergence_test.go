// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
)

// A zone is a label: leader and convergence, with its blockers, are the same whatever
// zones the members have.
func TestLeaderAndConvergenceDoNotDependOnZones(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		u := drawUniverse(t)
		s := u.state(t, "s")
		confirmed := map[gossip.NodeID]bool{}
		for _, n := range u.nodes {
			confirmed[n] = rapid.Bool().Draw(t, "confirmed")
		}
		isConfirmed := func(n gossip.NodeID) bool { return confirmed[n] }
		moved := relabelled(t, s)
		for _, self := range u.nodes {
			require.Equal(t, s.Leader(self), moved.Leader(self), "the leader for %v", self)
			wantConverged, wantBlockers := s.Convergence(self, isConfirmed)
			converged, blockers := moved.Convergence(self, isConfirmed)
			require.Equal(t, wantConverged, converged, "convergence for %v", self)
			require.Equal(t, wantBlockers, blockers, "what blocks for %v", self)
			require.Equal(t, converged, moved.Converged(self, isConfirmed))
		}
	})
}

// relabelled returns s with random zones.
func relabelled(t *rapid.T, s *gossip.State) *gossip.State {
	p := s.Parts()
	for i, m := range p.Members {
		other := *m
		other.Zone = rapid.SampledFrom([]string{"", "0", "1", "east"}).Draw(t, "zone")
		p.Members[i] = &other
	}
	moved, err := gossip.FromParts(p)
	require.NoError(t, err)
	return moved
}

// Under convergence all members that can act on a state agree on its leader, whatever
// the zones, and whoever has told which of them that it has finished: two members that
// have seen one state and know it to have converged never both lead.
func TestOneLeaderUnderConvergence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		u := drawUniverse(t)
		s := u.state(t, "s")
		var leaders []gossip.NodeID
		for _, self := range u.nodes {
			told := rapid.SliceOfDistinct(rapid.SampledFrom(u.nodes), rapid.ID[gossip.NodeID]).Draw(t, "told")
			confirmed := func(n gossip.NodeID) bool { return slices.Contains(told, n) }
			if s.Converged(self, confirmed) && s.Leader(self) == self {
				leaders = append(leaders, self)
			}
		}
		require.LessOrEqual(t, len(leaders), 1, "%v lead\n%s", leaders, s.Describe())
	})
}
