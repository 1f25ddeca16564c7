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
