// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// votersWithRole makes the members with the role backend vote, or everybody.
func votersWithRole(role string) func(*protocol.Config, *protocol.Dependencies) {
	return func(c *protocol.Config, _ *protocol.Dependencies) { c.Voters.Role = role }
}

// mixed returns a loop in which the first nodes are backends and the others edges.
func mixed(t *testing.T, backends int) *loop {
	l := newLoop(t)
	l.roles = func(i int) []string {
		if i <= backends {
			return []string{"backend"}
		}
		return []string{"edge"}
	}
	return l
}

// Of three backends two are cut off with one of five edges: they are the fewer, and
// go on only if the edges do not vote. The others stop within the fence, by their own
// clocks.
func TestWhoDoesNotVoteDoesNotDecideWhoSurvives(t *testing.T) {
	for _, c := range []struct {
		role string
		left []int
	}{
		{"backend", []int{2, 3, 4}},
		{"", []int{1, 5, 6, 7, 8}},
	} {
		t.Run("role="+c.role, func(t *testing.T) {
			l := mixed(t, 3)
			nodes := l.cluster(8, votersWithRole(c.role))
			for _, n := range nodes {
				require.True(t, n.hosts(), "%v hosts, whether it votes or not", n.id)
			}
			few := func(a gossip.Address) bool { return a == address(2) || a == address(3) || a == address(4) }
			l.cut = func(from, to gossip.Address) bool { return few(from) != few(to) }
			l.run(protocol.Default().Fence + protocol.Default().FailureDetector.HeartbeatInterval)
			require.Equal(t, c.left, hosting(nodes), "the side that loses hosts no more")
			l.run(30 * time.Second)
			require.Equal(t, c.left, hosting(nodes))
			for i, n := range nodes {
				require.Equal(t, !slices.Contains(c.left, i+1), n.dead, n.id)
			}
		})
	}
}

func hosting(nodes []*node) []int {
	var numbers []int
	for i, n := range nodes {
		if n.hosts() {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// Who votes follows from the role while nodes join, crash, leave and come again, in
// small clusters and in those where a node monitors some of the others. Everybody
// hosts, also a node that monitors few who vote.
func TestOnlyMembersWithTheRoleAreVoters(t *testing.T) {
	for _, c := range []struct{ backends, n int }{{1, 3}, {3, 7}, {3, 24}, {12, 24}} {
		l := mixed(t, c.backends)
		nodes := l.cluster(c.n, votersWithRole("backend"))
		look := func() {
			for _, n := range nodes {
				config := n.machine.State().Config()
				for _, voter := range slices.Concat(config.Voters, config.Previous) {
					require.Contains(t, l.roles(slices.IndexFunc(nodes, func(n *node) bool { return n.id.Address == voter.Address })+1), "backend")
				}
				require.NotEmpty(t, config.Voters)
			}
		}
		look()
		l.run(2 * time.Second)
		require.Len(t, hosting(nodes), c.n, "%d of %d vote", c.backends, c.n)
		last := nodes[c.n-1]
		nodes[0].step(protocol.Leave{Address: last.id.Address})
		l.run(5 * time.Second)
		require.True(t, last.dead)
		nodes[c.n-2].dead = true
		for range 30 {
			l.run(500 * time.Millisecond)
			look()
		}
		require.Len(t, hosting(nodes), c.n-2)
		require.Len(t, nodes[0].machine.State().Config().Voters, c.backends)
	}
}

// A member without a vote hosts by the word of the voters alone: cut off from them it
// stops within the fence, though it reaches most of the members.
func TestAMemberWithoutAVoteHostsByTheWordOfVoters(t *testing.T) {
	for _, c := range []struct{ backends, n int }{{3, 8}, {12, 30}} {
		l := mixed(t, c.backends)
		nodes := l.cluster(c.n, votersWithRole("backend"))
		last := address(c.n)
		voter := func(a gossip.Address) bool {
			return slices.ContainsFunc(nodes[:c.backends], func(n *node) bool { return n.id.Address == a })
		}
		l.cut = func(from, to gossip.Address) bool {
			return from == last && voter(to) || to == last && voter(from)
		}
		l.run(protocol.Default().Fence + protocol.Default().FailureDetector.HeartbeatInterval)
		require.Len(t, hosting(nodes), c.n-1)
		require.NotContains(t, hosting(nodes), c.n)
	}
}

// Among many each node monitors some of the voters, and some neighbours. One that has no
// vote and is neither answered nor lent a proof by the voters stops within the fence, although
// more neighbours without a vote than those answer it, and its state shows most of the
// voters as reachable.
func TestAmongManyNeighboursWithoutAVoteProveNothing(t *testing.T) {
	l := mixed(t, 8)
	l.cfg.FailureDetector.MonitoredByNrOfMembers = 3
	nodes := l.cluster(24, votersWithRole("backend"))
	voters := nodes[:8]
	votes := func(id gossip.NodeID) bool {
		return slices.ContainsFunc(voters, func(n *node) bool { return n.id == id })
	}
	monitored := map[gossip.NodeID]map[gossip.NodeID]bool{}
	l.drop = func(from, to gossip.NodeID, message any) bool {
		if _, beat := message.(protocol.Heartbeat); beat {
			if monitored[from] == nil {
				monitored[from] = map[gossip.NodeID]bool{}
			}
			monitored[from][to] = votes(to)
		}
		return false
	}
	l.run(2 * l.cfg.FailureDetector.HeartbeatInterval)
	alone := slices.IndexFunc(nodes, func(n *node) bool {
		voting := 0
		for _, votes := range monitored[n.id] {
			if votes {
				voting++
			}
		}
		return !votes(n.id) && 2*voting <= len(monitored[n.id])
	})
	require.GreaterOrEqual(t, alone, 0, "nobody has as many neighbours without a vote as voters: %v", monitored)
	l.drop = func(from, to gossip.NodeID, message any) bool {
		_, reply := message.(protocol.HeartbeatReply)
		_, lent := message.(protocol.LendStanding)
		return (reply || lent) && to == nodes[alone].id && votes(from)
	}
	l.run(l.cfg.Fence + l.cfg.FailureDetector.HeartbeatInterval)
	require.Len(t, hosting(nodes), 23)
	require.NotContains(t, hosting(nodes), alone+1)
}

// Until a member with the role has joined nobody is up, and the leader says why.
func TestAClusterFormsWithTheFirstWhoVotes(t *testing.T) {
	l := newLoop(t)
	l.roles = func(i int) []string {
		if i == 3 {
			return []string{"backend"}
		}
		return nil
	}
	first, second := l.join(1, votersWithRole("backend")), l.join(2, votersWithRole("backend"))
	l.run(30 * time.Second)
	require.True(t, first.sees(2, gossip.Joining) && second.sees(2, gossip.Joining), l.describe())
	require.False(t, first.hosts())
	require.Equal(t, `they stay joining: no member has the role "backend", and so none votes`, lastReason(first, "joining"))
	require.Equal(t, 1, decided(first, "newcomers", "joining"))
	third := l.join(3, votersWithRole("backend"))
	l.until(10*time.Second, func() bool { return l.allUp(3) })
	l.run(3 * time.Second)
	require.Equal(t, []gossip.NodeID{third.id}, first.machine.State().Config().Voters)
	require.True(t, first.hosts() && second.hosts() && third.hosts())
}

// The setting cannot change while the cluster runs, one node after the other: a node
// with another value is refused, so there are never two opinions of who votes.
func TestWhoCountsOtherVotersIsRefused(t *testing.T) {
	for _, c := range [][2]string{{"backend", ""}, {"", "backend"}, {"backend", "edge"}} {
		l := mixed(t, 3)
		nodes := l.cluster(3, votersWithRole(c[0]))
		nodes[2].dead = true
		again := l.start(3, 33, votersWithRole(c[1]))
		again.step(protocol.Join{Seeds: []gossip.Address{address(1), address(2)}})
		l.run(20 * time.Second)
		require.True(t, again.dead)
		require.Equal(t, component.StopRefused, again.stopping.Reason)
		require.Contains(t, again.stopping.Detail, "membership.voters.role")
		require.Equal(t, gossip.StatusNone, statusAt(nodes[0], again))
	}
}

func TestARoleThatNobodyCanHaveIsAFault(t *testing.T) {
	c := protocol.Default()
	c.Voters.Role = "a role\x00"
	require.ErrorContains(t, c.Validate(), "voters.role: no member can have it")
	c.Voters.Role = "backend"
	require.NoError(t, c.Validate())
}
