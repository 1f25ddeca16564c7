// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/membership/membershipsim/scenario"
	"github.com/quorate/quorate/simulation"
)

// accuses reports whether a node says of another that it cannot reach it, or knows
// that it is down or removed. Nodes that monitor all others say so by themselves.
func accuses(n *simulation.Node, other gossip.NodeID) bool {
	s := membershipsim.MachineOf(n).State()
	member := s.Member(other)
	return member == nil || member.Status == gossip.Down || !s.ReachableFrom(n.ID(), other)
}

// requireAccused requires that each node that runs accuses another that does not.
func requireAccused(t *testing.T, w *simulation.World, dead gossip.NodeID, what string) {
	t.Helper()
	for _, n := range w.Nodes() {
		require.True(t, accuses(n, dead), "%v does not accuse %v: %s", n.ID(), dead, what)
	}
}

// sleepers has all nodes but one stop for a while, by pauses drawn up to longest, and
// that one die meanwhile.
func sleepers(t *testing.T, seed uint64, n int, shortest, longest time.Duration) {
	t.Helper()
	p := formed(t, seed, n, membershipsim.Config{})
	w, r := p.world, rand.New(rand.NewPCG(seed, 1))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(r.Int64N(int64(most-least)+1))
	}
	victim := r.IntN(n)
	dead := w.Node(address(victim)).ID()
	for i := range n {
		if i != victim {
			w.After(between(0, 100*time.Millisecond), func() { w.Freeze(address(i), between(shortest, longest)) })
		}
	}
	w.After(between(0, longest), func() { w.Crash(dead.Address) })
	what := fmt.Sprintf("seed %d, %d nodes, pauses of %v to %v", seed, n, shortest, longest)
	require.NoError(t, w.Run(2*longest+15*time.Second), what)
	requireAccused(t, w, dead, what)
	require.NoError(t, w.Run(15*time.Second), what)
	for _, n := range w.Nodes() {
		require.Nil(t, membershipsim.MachineOf(n).State().Member(dead), "%v has not removed it: %s", n.ID(), what)
	}
}

// Hosts are suspended, or snapshots taken, of all nodes but one, and that one dies
// while they sleep: they have no right to accuse it at once, but must not forget to.
//
// covers F24, F33, I9, I10.
func TestNodeThatDiesWhileAllOthersSleepIsAccused(t *testing.T) {
	for _, n := range []int{2, 3, 5, 7} {
		sleepers(t, uint64(n), n, 10*time.Second, 10*time.Second)
		for seed := range uint64(5) {
			sleepers(t, seed, n, 1600*time.Millisecond, 12*time.Second)
		}
	}
}

// A joiner that one member has answered once, and the others never, is cut off; what
// it waits for comes due in the instant in which it sends its heartbeats anew. It
// accuses all of them. When all of them have been replaced meanwhile, it does not
// look for ever for a cluster that is gone.
//
// covers F25, I9, I10.
func TestJoinerThatIsCutOffAccusesAllAndEnds(t *testing.T) {
	const joiner = 3
	p := formed(t, 1, joiner, membershipsim.Config{})
	w := p.world
	for i := 1; i < joiner; i++ {
		w.Network().Cut(address(i), address(joiner))
		w.Network().Cut(address(joiner), address(i))
	}
	p.start(joiner)
	node := w.Node(address(joiner))
	_, err := w.RunUntil(10*time.Second, func() bool { return membershipsim.MachineOf(node).State().Member(node.ID()) != nil })
	require.NoError(t, err)
	require.NoError(t, w.Run(100*time.Millisecond), "the first answer")
	w.Network().Split(addresses(0, joiner), addresses(joiner, joiner+1))
	peers := membershipsim.MachineOf(node).State().Members()
	require.NoError(t, w.Run(20*time.Second))
	require.True(t, !node.Alive() || !slices.ContainsFunc(peers, func(m *gossip.Member) bool {
		return m.Node != node.ID() && !accuses(node, m.Node)
	}), "the joiner has ended, or accuses all: %v", membershipsim.MachineOf(node).State().Describe())
	for i := range joiner { // One after the other, as an update does.
		w.Crash(address(i))
		require.NoError(t, w.Run(15*time.Second))
		others := slices.Delete(addresses(0, joiner), i, i+1)
		w.Restart(address(i)).Input(protocol.Service, protocol.Join{Seeds: others})
		require.NoError(t, w.Run(10*time.Second))
	}
	w.Network().Heal()
	require.NoError(t, w.Run(10*time.Second))
	require.False(t, node.Alive() && membershipsim.MachineOf(node).State().Member(node.ID()).Status == gossip.Joining,
		"it joins for ever: %v", membershipsim.MachineOf(node).State().Describe())
}

// Seeds of smaller and of larger clusters in which a dead node was accused by nobody.
func TestSeedsInWhichADeadNodeWasForgotten(t *testing.T) {
	for _, c := range []struct {
		nodes int
		seed  uint64
	}{{7, 1000786}, {3, 2100234}, {3, 2110212}} {
		t.Run(fmt.Sprintf("%d-nodes-%d", c.nodes, c.seed), func(t *testing.T) {
			_, err := scenario.Run(scenario.Options{Scenario: "chaos", Seed: c.seed, Nodes: c.nodes})
			require.NoError(t, err)
		})
	}
}
