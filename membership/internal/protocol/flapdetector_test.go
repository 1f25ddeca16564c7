// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// flappers returns a cluster of five of which the links of the last node work and break by turns, for
// less than a view needs to be stable.
func flappers(t *testing.T, change ...func(*protocol.Config, *protocol.Dependencies)) (*loop, []*node) {
	t.Helper()
	l := newLoop(t)
	nodes := l.cluster(5, change...)
	const period, broken = 7500 * time.Millisecond, 5600 * time.Millisecond
	began := l.now
	l.drop = func(from, to gossip.NodeID, _ any) bool {
		return (from == nodes[4].id || to == nodes[4].id) && (l.now-began)%period < broken
	}
	return l, nodes
}

// manually leaves it to an operator to down members.
func manually(_ *protocol.Config, d *protocol.Dependencies) {
	d.Downing.Config.Strategy, d.Downing.Class = downing.ManualName, downing.Manual{}.Class()
	d.Downing.Decide = downing.Manual{}.DecideNow
}

// accusations returns how often a node has accused another one.
func (n *node) accusations(of gossip.NodeID) int {
	count := 0
	for _, d := range n.decisions {
		if d.Topic == "reachability" && d.Subject == of.String() && d.Verdict == "unreachable" {
			count++
		}
	}
	return count
}

// A member that is accused and taken back again and again is removed when it is accused for the third time.
//
// covers F13, I13.
func TestAMemberThatFlapsIsRemoved(t *testing.T) {
	l, nodes := flappers(t)
	l.until(time.Minute, func() bool { return nodes[0].accusations(nodes[4].id) == 3 })
	l.run(5 * time.Second)
	require.Nil(t, nodes[0].machine.State().Member(nodes[4].id))
	for _, n := range nodes[:4] {
		require.Equal(t, 3, n.accusations(nodes[4].id))
		require.True(t, n.hosts())
	}
}

// Where nobody decides, a member that flapped is taken back when it has answered for as long as a decision
// takes, and its answers have no pause.
func TestAMemberThatFlappedIsTakenBackWhenItIsSteady(t *testing.T) {
	l, nodes := flappers(t, manually)
	l.until(time.Minute, func() bool { return nodes[0].accusations(nodes[4].id) == 3 })
	kept := func() bool { return !nodes[0].machine.State().ReachableFrom(nodes[0].id, nodes[4].id) }
	for range 30 {
		l.run(time.Second)
		require.True(t, kept(), "it flaps on")
	}
	l.drop = nil
	steady := downing.Spread(5) + 3*time.Second + protocol.CallLimitDefault
	took := l.until(time.Minute, func() bool { return !kept() })
	require.GreaterOrEqual(t, took, steady)
	require.Less(t, took, steady+2*time.Second)
	require.Equal(t, 3, nodes[0].accusations(nodes[4].id))
}

// A node that stood still itself does not know who flaps.
//
// covers F24.
func TestANodeThatSleepsKeepsNoRecords(t *testing.T) {
	l, nodes := flappers(t)
	for i := range 3 {
		l.until(time.Minute, func() bool { return nodes[0].accusations(nodes[4].id) == i+1 })
		nodes[0].freeze()
		l.run(2 * time.Second)
		nodes[0].thaw()
	}
	for _, d := range nodes[0].decisions {
		require.NotContains(t, d.Reason, "kept until")
	}
}
