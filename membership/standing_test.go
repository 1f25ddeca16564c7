// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
)

// TestStandingIsLostByTheOwnClock covers I14: nobody has to tell the node.
func TestStandingIsLostByTheOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Standing{clock: machine.NewSystemClock()}
		require.False(t, s.Held(), "a node begins without standing")
		s.set(s.clock.Instant().Add(3 * time.Second))
		require.True(t, s.Held())
		<-time.After(3*time.Second + time.Nanosecond)
		require.False(t, s.Held())
		s.set(machine.Never)
		require.True(t, s.Held())
		s.set(0)
		require.False(t, s.Held())
	})
}

// TestLookingAtStandingAllocatesNothing guards the path of every message.
func TestLookingAtStandingAllocatesNothing(t *testing.T) {
	s := Standing{clock: machine.NewSystemClock()}
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = s.Held() }))
}

// TestASparedReadingProvesStandingUntilTheMargin covers I14: near the end, and where there is
// no standing, only a full reading says anything.
func TestASparedReadingProvesStandingUntilTheMargin(t *testing.T) {
	s := Standing{clock: machine.NewSystemClock(), margin: time.Second}
	spared := func(to machine.Instant) machine.Reading { return machine.Reading{From: to - 1, To: to} }
	exact := func(at machine.Instant) machine.Reading { return machine.Reading{From: at, To: at} }
	end := machine.Instant(10 * time.Second)
	require.False(t, s.HeldThrough(exact(0)), "a node begins without standing")
	require.False(t, s.HeldThrough(spared(1)))
	s.set(end)
	require.True(t, s.HeldThrough(exact(end)))
	require.False(t, s.HeldThrough(exact(end+1)))
	require.True(t, s.HeldThrough(spared(end.Add(-time.Second))))
	require.False(t, s.HeldThrough(spared(end.Add(-time.Second)+1)))
	s.set(machine.Never)
	require.True(t, s.HeldThrough(spared(end)))
}
