// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing/lease/internal/protocol"
)

// The clock advances by the wall clock while the monotonic one stands still, as when a machine
// sleeps, and by the monotonic one while the wall clock is set back by minutes.
func TestTheClockFollowsWhicheverClockIsAhead(t *testing.T) {
	var c protocol.Clock
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // Without a monotonic reading.
	require.Zero(t, c.Read(start))
	require.Equal(t, time.Hour, c.Read(start.Add(time.Hour)), "a wall clock that is set forward ends a lease")
	require.Equal(t, time.Hour, c.Read(start), "nothing goes back")

	var m protocol.Clock
	begin := time.Now()
	require.Zero(t, m.Read(begin))
	require.Equal(t, time.Minute, m.Read(begin.Add(time.Minute)))
	require.Equal(t, time.Minute, m.Read(begin), "an earlier moment that is told later")
	require.Equal(t, 2*time.Minute, m.Read(begin.Add(2*time.Minute)))
}
