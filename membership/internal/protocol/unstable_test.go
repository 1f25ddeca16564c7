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
// for down-when-unstable-after, and never where that is zero. covers F13, I13.
func TestAViewThatNeverCalmsIsDecidedAbout(t *testing.T) {
	for _, unstable := range []time.Duration{0, 12 * time.Second, 20 * time.Second} {
		l := newLoop(t)
		nodes := l.cluster(5, func(c *protocol.Config, _ *protocol.Deps) { c.DownWhenUnstableAfter = unstable })
		const period, broken = 7500 * time.Millisecond, 5600 * time.Millisecond
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
			l.run(40 * time.Second)
			require.False(t, down(), "the view was stable once")
			continue
		}
		took := l.until(30*time.Second, down)
		require.Greater(t, took, unstable)
		require.Less(t, took, unstable+6*time.Second)
	}
}
