// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// untilFenced runs until a dead node is fenced at all others but those that are gone
// as well.
func (l *loop) untilFenced(limit time.Duration, dead gossip.NodeID, gone ...gossip.NodeID) time.Duration {
	return l.until(limit, func() bool {
		for _, n := range l.nodes {
			if n.dead || n.id == dead || slices.Contains(gone, n.id) {
				continue
			}
			fenced := false
			for _, f := range n.fences {
				fenced = fenced || f.Node == dead
			}
			if !fenced {
				return false
			}
		}
		return true
	})
}

// From the crash of a node until everybody knows that nothing of it can be
// hosting takes less than 10 seconds with the default settings, at whatever
// moment between two heartbeats it dies. covers I9.
func TestCrashIsFencedWithinTenSeconds(t *testing.T) {
	for size := 3; size <= 5; size++ {
		for victim := range size {
			l := newLoop(t)
			nodes := l.cluster(size)
			l.run(time.Duration(victim) * 137 * time.Millisecond)
			nodes[victim].dead = true
			took := l.untilFenced(20*time.Second, nodes[victim].id)
			t.Logf("%d nodes, node %d died: %v", size, victim+1, took)
			require.Less(t, took, 10*time.Second)
			l.run(2 * time.Second)
			for _, n := range nodes {
				require.True(t, n.dead || n.hosts())
				require.True(t, n.dead || n.sees(size-1, gossip.Up))
			}
		}
	}
}

func TestFastSettingsFenceACrashWithinFourSeconds(t *testing.T) {
	l := newLoop(t)
	l.cfg = protocol.Fast()
	nodes := l.cluster(5)
	nodes[0].dead = true
	took := l.untilFenced(10*time.Second, nodes[0].id)
	t.Logf("fast: %v", took)
	require.Less(t, took, 4*time.Second)
}

// The side that loses stops hosting before the side that wins has the word that
// it may take over, for every way to cut 3 to 5 nodes in two. covers F9, I1, I4, I13.
func TestLosingSideStopsHostingBeforeTheWinnerTakesOver(t *testing.T) {
	for size := 3; size <= 5; size++ {
		for split := 1; split < 1<<size-1; split += 2 {
			l := newLoop(t)
			nodes := l.cluster(size)
			on := func(a gossip.Address) bool {
				for i, n := range nodes {
					if n.id.Address == a {
						return split&(1<<i) != 0
					}
				}
				return false
			}
			l.cut = func(from, to gossip.Address) bool { return on(from) != on(to) }
			checkTakeOver(l, nodes)
			l.run(20 * time.Second)
			survivors, sides := 0, map[bool]bool{}
			for _, n := range nodes {
				if n.stopping == nil {
					survivors++
					sides[on(n.id.Address)] = true
				}
			}
			require.Len(t, sides, 1, "split %b of %d", split, size)
			require.GreaterOrEqual(t, 2*survivors, size, "split %b of %d", split, size)
		}
	}
}

// checkTakeOver looks each 10 ms that nobody hosts who is fenced at another.
func checkTakeOver(l *loop, nodes []*node) {
	var check func()
	check = func() {
		for _, n := range nodes {
			for _, f := range n.fences {
				if other := l.nodes[f.Node.Address]; other.id == f.Node {
					require.False(l.t, other.hosts(), "%v hosts although it is fenced at %v", f.Node, n.id)
				}
			}
		}
		l.after(10*time.Millisecond, check)
	}
	l.after(0, check)
}

// Within the fence of a cut, the smaller side does not host any more; the larger
// never stops hosting.
func TestStandingFollowsTheMajority(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(5)
	l.cut = splitAtThree()
	for range 400 {
		l.run(10 * time.Millisecond)
		for _, n := range nodes[2:] {
			require.True(t, n.hosts(), "%v at %v", n.id, l.now)
		}
	}
	require.False(t, nodes[0].hosts())
	require.False(t, nodes[1].hosts())
	l.cut = nil
	l.run(2 * time.Second)
	require.True(t, nodes[0].hosts(), "standing returns by itself")
	require.True(t, nodes[1].hosts())
	require.True(t, l.allUp(5))
}

// covers F24, I12, I14: a node that stood still neither hosts nor accuses when it
// runs again, and comes back if it was short.
func TestFrozenNodeNeitherHostsNorAccuses(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(5)
	nodes[0].freeze()
	l.run(4500 * time.Millisecond)
	require.False(t, nodes[0].hosts(), "its own clock says so before it runs again")
	nodes[0].thaw()
	l.run(5 * time.Second)
	require.True(t, l.allUp(5))
	require.True(t, nodes[0].hosts())
	for _, d := range nodes[0].decisions {
		require.NotEqual(t, "unreachable", d.Verdict, d.Subject)
	}
}

// covers F24, F25, I7: a node that stood still for so long that it was removed
// learns it and stops.
func TestNodeThatWasRemovedWhileFrozenStops(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(5)
	checkTakeOver(l, nodes)
	nodes[0].freeze()
	l.run(15 * time.Second)
	require.True(t, nodes[1].sees(4, gossip.Up))
	nodes[0].thaw()
	l.run(3 * time.Second)
	require.NotNil(t, nodes[0].stopping)
	require.Equal(t, component.StopDowned, nodes[0].stopping.Reason)
	require.True(t, nodes[1].sees(4, gossip.Up))
}

// covers F25: the same behind a cut that heals.
func TestNodeThatWasRemovedBehindACutStops(t *testing.T) {
	l := newLoop(t)
	// Without a strategy of its own the cut off node waits.
	silent := func(_ *protocol.Config, d *protocol.Dependencies) {
		d.Downing.Decide = func(v downing.View) (downing.Decision, error) {
			if v.Self.Address == address(3) {
				return downing.Decision{Reason: "waits"}, nil
			}
			return downing.KeepMajority{}.DecideNow(v)
		}
	}
	nodes := l.cluster(3, silent)
	l.cut = splitAtThree()
	l.run(15 * time.Second)
	require.Nil(t, nodes[2].stopping)
	l.cut = nil
	l.run(3 * time.Second)
	require.NotNil(t, nodes[2].stopping)
}

// covers I12: one node that is deaf for a while is unreachable and comes back.
func TestShortCutIsForgiven(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	l.cut = splitAtThree()
	l.run(5500 * time.Millisecond)
	require.False(t, nodes[0].machine.State().Reachable(nodes[2].id))
	require.NotEmpty(t, nodes[0].machine.Explain())
	l.cut = nil
	l.run(3 * time.Second)
	require.True(t, l.allUp(3))
	require.True(t, nodes[0].machine.State().Reachable(nodes[2].id))
	require.Empty(t, nodes[0].machine.Explain())
}

// calledStrategy makes a node ask its strategy by calls.
func calledStrategy(class downing.Class) func(*protocol.Config, *protocol.Dependencies) {
	return func(_ *protocol.Config, d *protocol.Dependencies) { d.Downing.Decide, d.Downing.Class = nil, class }
}

func answer(n *node, call machine.Call, after time.Duration) {
	n.loop.after(after, func() {
		decision, err := downing.KeepMajority{}.DecideNow(call.Request.(protocol.DowningRequest).View)
		if err != nil {
			n.step(machine.Called{ID: call.ID, Err: err})
			return
		}
		n.step(machine.Called{ID: call.ID, Result: decision})
	})
}

// Where a minority may survive, more time passes before work gets new homes.
func TestCalledStrategyDecides(t *testing.T) {
	for majorityOnly, limit := range map[bool]time.Duration{true: 11 * time.Second, false: 16 * time.Second} {
		l := newLoop(t)
		l.calls = func(n *node, c machine.Call) { answer(n, c, time.Second) }
		nodes := l.cluster(3, calledStrategy(downing.Class{Pure: true, MajorityOnly: majorityOnly}))
		nodes[2].dead = true
		took := l.untilFenced(20*time.Second, nodes[2].id)
		t.Log("majority only", majorityOnly, took)
		require.Less(t, took, limit)
	}
}

// An answer that comes after the machine's own limit is dropped, and so is one
// about a view that has changed.
func TestLateAndStaleAnswersAreDropped(t *testing.T) {
	for name, delay := range map[string]time.Duration{"late": 7 * time.Second, "stale": 4 * time.Second} {
		l := newLoop(t)
		calls := 0
		l.calls = func(n *node, c machine.Call) { calls++; answer(n, c, delay) }
		nodes := l.cluster(3, calledStrategy(downing.Class{Pure: true}))
		nodes[2].dead = true
		l.until(20*time.Second, func() bool { return calls == 1 })
		if name == "stale" {
			nodes[2].dead = false
			nodes[2].timers = map[machine.Timer]int{}
		}
		l.run(delay + time.Second)
		require.NotEqual(t, gossip.Down, nodes[0].machine.State().Member(nodes[2].id).Status, name)
	}
}

// A strategy that promises to let nothing but majorities survive is stood in for
// by one with the same promise; another is waited for, and then the side goes.
func TestStrategyThatCannotAnswer(t *testing.T) {
	fail := func(n *node, c machine.Call) {
		n.loop.after(time.Second, func() { n.step(machine.Called{ID: c.ID, Err: errors.New("witness is away")}) })
	}
	l := newLoop(t)
	l.calls = fail
	nodes := l.cluster(3, calledStrategy(downing.Class{MajorityOnly: true}))
	nodes[2].dead = true
	l.untilFenced(20*time.Second, nodes[2].id)
	require.Nil(t, nodes[0].stopping)

	l = newLoop(t)
	l.calls = fail
	nodes = l.cluster(3, calledStrategy(downing.Class{}))
	nodes[2].dead = true
	l.run(30 * time.Second)
	require.Nil(t, nodes[0].stopping)
	l.run(20 * time.Second)
	require.NotNil(t, nodes[0].stopping)
	require.NotNil(t, nodes[1].stopping)
}

// covers F40 for downing: a decision that breaks the contract downs nobody.
func TestDecisionThatBreaksTheContractDownsNobody(t *testing.T) {
	for name, decision := range map[string]downing.Decision{
		"unknown node": {Verdict: downing.KeepSide, Down: []gossip.NodeID{{Address: address(9), UID: 9}}},
		"no verdict":   {Down: []gossip.NodeID{{Address: address(2), UID: 2}}},
		"minority":     {Verdict: downing.KeepSide, Down: []gossip.NodeID{{Address: address(2), UID: 2}, {Address: address(3), UID: 3}}},
	} {
		l := newLoop(t)
		nodes := l.cluster(3, func(_ *protocol.Config, d *protocol.Dependencies) {
			d.Downing.Class = downing.Class{Pure: true, MajorityOnly: name == "minority"}
			d.Downing.Decide = func(downing.View) (downing.Decision, error) { return decision, nil }
		})
		nodes[2].dead = true
		l.run(15 * time.Second)
		require.Nil(t, nodes[1].stopping, name)
		if name == "minority" {
			require.True(t, nodes[0].sees(2, gossip.Up), "the rule with the same promise stepped in")
		} else {
			require.Equal(t, gossip.Up, nodes[0].machine.State().Member(nodes[1].id).Status, name)
		}
	}
}

// covers F17: accusations that trickle in do not let both halves decide.
func TestFlappingLinkIsDecidedByTheMajorityInTheEnd(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(5)
	bad := func(a gossip.Address) bool { return a == address(5) }
	l.cut = func(from, to gossip.Address) bool {
		return (bad(from) || bad(to)) && int(l.now/(6*time.Second))%2 == 0
	}
	l.run(90 * time.Second)
	for _, n := range nodes[:4] {
		require.Nil(t, n.stopping, fmt.Sprint(n.id))
		require.True(t, n.hosts())
	}
}
