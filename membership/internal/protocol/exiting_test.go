// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// exits is a cluster of five of which a member leaves while the four others are cut into
// two and two. The leaver has heard that it exits, and is on the side of the first two.
type exits struct {
	*loop

	nodes  []*node
	leaver *node
	one    map[gossip.Address]bool // The side that the leaver is on, without the leaver.
}

// leaveAtACut has node number of leave, and cuts two of the others off after some time, from
// each other side, and from the leaver as lost says.
func leaveAtACut(t *testing.T, of, with int, lead time.Duration, lost func(message any) bool) *exits {
	t.Helper()
	l := newLoop(t)
	e := &exits{loop: l, nodes: l.cluster(5), one: map[gossip.Address]bool{}}
	e.leaver = e.nodes[of]
	others := append(append([]*node{}, e.nodes[:of]...), e.nodes[of+1:]...)
	e.one[others[0].id.Address], e.one[others[with].id.Address] = true, true
	others[0].step(protocol.Leave{Address: e.leaver.id.Address})
	l.run(lead)
	l.drop = func(from, to gossip.NodeID, message any) bool {
		if from == e.leaver.id || to == e.leaver.id {
			return !e.one[from.Address] && !e.one[to.Address] && lost(message)
		}
		return e.one[from.Address] != e.one[to.Address]
	}
	checkTakeOver(l, e.nodes)
	return e
}

// removedEachOther tells whether the members of both sides have removed the others.
func (e *exits) removedEachOther() bool {
	removed := map[bool]bool{}
	for _, n := range e.nodes {
		for _, of := range e.nodes {
			if n != e.leaver && of != e.leaver && n.stopping == nil && e.one[n.id.Address] != e.one[of.id.Address] &&
				n.machine.State().Member(of.id) == nil {
				removed[e.one[n.id.Address]] = true
			}
		}
	}
	return len(removed) > 1
}

// hosting returns how many nodes host.
func (e *exits) hosting() (hosting int) {
	for _, n := range e.nodes {
		if n.stopping == nil && n.hosts() {
			hosting++
		}
	}
	return hosting
}

// A member exits and is a voter of before that to those who have not heard of it. It has
// seen the view of one side, and that side goes on by its vote. Meanwhile it is cut off from
// the other side, or answers it without its news, or hears all of it: whatever it does, nobody
// hosts who is fenced, and no two sides remove each other.
//
// covers F14, F28, I1, I2, I13.
func TestASideGoesOnByTheVoteOfAMemberThatExits(t *testing.T) {
	runs, survived, step := 0, 0, 40*time.Millisecond
	if simulationtest.Times > 1 {
		step = 8 * time.Millisecond
	}
	for name, lost := range map[string]func(any) bool{
		"all":    func(any) bool { return true },
		"gossip": isGossip,
		"none":   func(any) bool { return false },
	} {
		for of := range 5 {
			for with := 1; with < 4; with++ {
				for lead := 40 * time.Millisecond; lead <= 144*time.Millisecond; lead += step {
					runs++
					e := leaveAtACut(t, of, with, lead, lost)
					for range 500 {
						e.run(40 * time.Millisecond)
						require.False(t, e.removedEachOther(), "%s lost, %d leaves, with %d, %v", name, of, with, lead)
					}
					if e.hosting() > 0 {
						survived++
					}
				}
			}
		}
	}
	t.Log("somebody goes on in", survived, "of", runs)
	require.Greater(t, survived, runs/2)
}

// A member is declared down while it exits, and a joiner hears only that it was removed. Nobody says
// that it left in order: what its disk holds may be the last copy.
//
// covers F28.
func TestWhoIsDownedWhileItExitsHasNotLeftInOrder(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	leader, other, leaver, joiner := nodes[0], nodes[1], nodes[2], l.join(4)
	exits := func(n *node) bool {
		m := n.machine.State().Member(leaver.id)
		return m != nil && m.Status == gossip.Exiting
	}
	isReport := func(message any) bool { _, ok := message.(protocol.Reached); return ok }
	l.drop = func(_, to gossip.NodeID, message any) bool { // The joiner is not promoted, and the exit does not converge.
		return isReport(message) || isGossip(message) && to == other.id && exits(leader)
	}
	l.until(2*time.Second, func() bool { return joiner.machine.State().Member(leaver.id) != nil })
	leader.step(protocol.Leave{Address: leaver.id.Address})
	l.until(5*time.Second, func() bool { return exits(joiner) })
	l.drop = func(_, to gossip.NodeID, message any) bool {
		return isReport(message) || isGossip(message) && to == joiner.id
	}
	leader.step(protocol.Down{Address: leaver.id.Address})
	l.until(5*time.Second, func() bool { return leader.machine.State().Member(leaver.id) == nil })
	require.True(t, exits(joiner))
	l.drop = nil
	l.untilFenced(10*time.Second, leaver.id)
	for _, n := range []*node{leader, other, joiner} {
		require.False(t, n.fences[0].Graceful, "%v", n.id)
	}
}
