// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The clock advances by the wall clock while the monotonic one stands still, as when a machine
// sleeps, and by the monotonic one while the wall clock is set back by minutes.
func TestTheClockFollowsWhicheverClockIsAhead(t *testing.T) {
	var c clock
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // Without a monotonic reading.
	require.Zero(t, c.now(start))
	require.Equal(t, time.Hour, c.now(start.Add(time.Hour)), "a wall clock that is set forward ends a lease")
	require.Equal(t, time.Hour, c.now(start), "nothing goes back")

	var m clock
	begin := time.Now()
	require.Zero(t, m.now(begin))
	require.Equal(t, time.Minute, m.now(begin.Add(time.Minute)))
	require.Equal(t, time.Minute, m.now(begin), "an earlier moment that is told later")
	require.Equal(t, 2*time.Minute, m.now(begin.Add(2*time.Minute)))
}
