// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// brokenPair is a cluster of n nodes in which the last two cannot reach each other; all others
// reach all.
func brokenPair(t *testing.T, n int, latency time.Duration) (*loop, []*node) {
	l := newLoop(t)
	l.latency = latency
	nodes := l.cluster(n)
	a, b := address(n-1), address(n)
	l.cut = func(from, to gossip.Address) bool { return from == a && to == b || from == b && to == a }
	return l, nodes
}

// ended returns how many nodes have ended.
func ended(nodes []*node) int {
	count := 0
	for _, n := range nodes {
		if n.stopping != nil {
			count++
		}
	}
	return count
}

// A strategy is asked about a state that has rested. An edit of the leader that has nothing to
// do with the decision empties the set of those who have seen the state, and comes a moment before
// the decision: who is complained about, and reaches the leader, is not lost for that. One end
// of the broken link goes, as without the edit.
func TestAnEditJustBeforeADecisionTakesNobodyForLost(t *testing.T) {
	for _, latency := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 40 * time.Millisecond} {
		l, nodes := brokenPair(t, 3, latency)
		decided := time.Duration(0)
		l.until(30*time.Second, func() bool {
			for _, d := range nodes[0].decisions {
				if d.Topic == "downing" && d.Subject != "strategy" {
					decided = l.now
				}
			}
			return decided > 0
		})
		l.run(15 * time.Second)
		require.Equal(t, 1, ended(nodes), "without an edit")
		for before := time.Millisecond; before < 3*latency+60*time.Millisecond; before += 3 * time.Millisecond {
			l, nodes := brokenPair(t, 3, latency)
			l.run(decided - before - l.now)
			nodes[0].step(component.Services{Service: machine.Service(77)})
			l.run(15 * time.Second)
			require.Equal(t, 1, ended(nodes), "an edit %v before the decision, latency %v\n%s", before, latency, l)
		}
	}
}
