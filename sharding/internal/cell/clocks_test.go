// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
)

// For clocks that do not drift, a node never takes the clock of another node for later than
// it is. It takes it for earlier by no more than the fastest acknowledgement took.
func TestClocksAreBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c cell.ClockBounds
		ahead := machine.Instant(rapid.Int64Range(0, 1<<40).Draw(t, "ahead")) // How far the clock of nodeB is ahead of the node's own.
		now, fastest := machine.Instant(1), time.Hour
		for range rapid.IntRange(1, 20).Draw(t, "acks") {
			require.LessOrEqual(t, c.At(nodeB, now), now+ahead)
			took := time.Duration(rapid.IntRange(1, 1000).Draw(t, "took")) * time.Millisecond
			now = now.Add(took)
			c.Heard(nodeB, now.Add(-took)+ahead, now)
			fastest = min(fastest, took)
			require.Equal(t, now.Add(-fastest)+ahead, c.At(nodeB, now), "none took longer than 20 s in all")
		}
		require.Zero(t, c.At(nodeC, now))
	})
}

// A node notices after a while that the clock of another node stood still, and at once that
// the clock shows more than expected.
func TestAClockThatStoodStill(t *testing.T) {
	var c cell.ClockBounds
	second := machine.Instant(time.Second)
	c.Heard(nodeB, 0, 0)
	require.Zero(t, c.At(nodeB, second), "it does not say")
	c.Heard(nodeB, 100*second, 0)
	require.Equal(t, 110*second, c.At(nodeB, 10*second))
	c.Heard(nodeB, 105*second, 10*second)
	require.Equal(t, 110*second, c.At(nodeB, 10*second), "it may have taken long")
	c.Heard(nodeB, 125*second, 30*second)
	require.Equal(t, 125*second, c.At(nodeB, 30*second))
	c.Heard(nodeB, 140*second, 40*second)
	require.Equal(t, 140*second, c.At(nodeB, 40*second), "more is better at once")
	c.Forget(nodeB)
	require.Zero(t, c.At(nodeB, 40*second))
}

// A node remembers the clocks of a bounded number of nodes.
func TestClocksAreBounded(t *testing.T) {
	var c cell.ClockBounds
	first, known := node("a", 1), 0
	c.Heard(first, 7, 1)
	for i := range gossip.UID(10_000) {
		c.Heard(node("b", i+1), 7, 1)
	}
	require.Zero(t, c.At(first, 1))
	for i := range gossip.UID(10_000) {
		if c.At(node("b", i+1), 1) != 0 {
			known++
		}
	}
	require.Positive(t, known)
	require.LessOrEqual(t, known, 4096)
}
