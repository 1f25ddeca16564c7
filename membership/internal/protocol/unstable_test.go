// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// One of five nodes is dead, and three links between the others break and mend by turns, so that
// no view lasts for stable-after. The strategy is asked all the same when the trouble has lasted
// for down-when-unstable-after; where that is zero, when the links have flapped so often that their records
// are kept. covers F13, I13.
func TestAViewThatNeverCalmsIsDecidedAbout(t *testing.T) {
	for _, unstable := range []time.Duration{0, 12 * time.Second, 20 * time.Second} {
		l := newLoop(t)
		nodes := l.cluster(5, func(c *protocol.Config, _ *protocol.Dependencies) { c.DownWhenUnstableAfter = unstable })
		const period, broken, stable = 7500 * time.Millisecond, 5600 * time.Millisecond, 3 * time.Second
		began := l.now
		flaps := map[gossip.NodeID]int{nodes[1].id: 0, nodes[2].id: 1, nodes[3].id: 2}
		l.drop = func(from, to gossip.NodeID, _ any) bool {
			if from == nodes[4].id || to == nodes[4].id {
				return true
			}
			a, one := flaps[from]
			b, other := flaps[to]
			phase := time.Duration(a+b) * period / 3 // The links have the sums 1, 2 and 3.
			return one && other && (l.now-began+phase)%period < broken
		}
		down := func() bool { return holdsDown(nodes[0], nodes[4].id) }
		if unstable == 0 {
			took := l.until(40*time.Second, down)
			require.Greater(t, took, 3*period+stable, "the third record about each link is kept, so that the view calms")
			continue
		}
		took := l.until(30*time.Second, down)
		require.Greater(t, took, unstable)
		require.Less(t, took, unstable+6*time.Second)
	}
}

// One of three nodes has died, and the others stand still before they have decided about it. Whenever
// they do, and however long, the view has to be stable for as long as ever once they run again.
//
// covers F24, I12.
func TestAViewIsStableOnlyAfterTimeAwake(t *testing.T) {
	var stable time.Duration
	for _, pause := range []time.Duration{0, 2 * time.Second, 10 * time.Second, time.Minute} {
		for at := time.Duration(0); at == 0 || at < stable && pause > 0; at += 20 * time.Millisecond {
			l := newLoop(t)
			nodes := l.cluster(3)
			nodes[2].dead = true
			l.until(10*time.Second, func() bool { return len(nodes[0].machine.State().Observers(nodes[2].id)) == 2 })
			l.run(at)
			l.now += pause
			took := l.until(time.Minute, func() bool { return holdsDown(nodes[0], nodes[2].id) })
			if pause == 0 {
				stable = took
			}
			require.GreaterOrEqual(t, took, stable, "after a pause of %v at %v", pause, at)
		}
	}
}

// A leader that stands still again and again, for less than what the others accuse it for, never sees a
// stable view. It decides when it has seen trouble for down-when-unstable-after while it ran.
//
// covers F24, I13.
func TestALeaderThatSleepsAgainAndAgainDecides(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	nodes[2].dead = true
	l.until(10*time.Second, func() bool { return len(nodes[0].machine.State().Observers(nodes[2].id)) == 2 })
	awake := time.Duration(0)
	for ; !holdsDown(nodes[0], nodes[2].id); awake += 2 * time.Second {
		require.Less(t, awake, 30*time.Second)
		l.now += 2 * time.Second
		l.run(2 * time.Second)
	}
	require.Greater(t, awake, l.cfg.DownWhenUnstableAfter-2*time.Second)
}
