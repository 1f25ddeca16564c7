// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Jobs come out in the order in which they went in, whatever memory the ring has taken or given back.
func TestJobsKeepTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r jobRing[int]
		next, first := 0, 0
		for range rapid.IntRange(1, 20).Draw(t, "bursts") {
			for range rapid.IntRange(0, 5*minJobRing).Draw(t, "pushes") {
				r.push(next)
				next++
			}
			for range rapid.IntRange(0, r.len()).Draw(t, "pops") {
				require.Equal(t, first, r.pop())
				first++
			}
			require.Equal(t, next-first, r.len())
			require.LessOrEqual(t, len(r.ring), max(minJobRing, 8*r.len()+8), "what a burst needed is given back")
		}
	})
}

// A burst of jobs leaves no memory behind.
func TestABurstOfJobsLeavesNoMemory(t *testing.T) {
	var r jobRing[int]
	for i := range 100 * minJobRing {
		r.push(i)
	}
	for r.len() > 0 {
		r.pop()
	}
	require.LessOrEqual(t, len(r.ring), minJobRing)
}
