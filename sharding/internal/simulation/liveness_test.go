// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	world "github.com/quorate/quorate/simulation"
)

// After nodes were paused, messages of one type were lost and links were bad, a cluster has
// a coordinator and homes within the time that the liveness check permits.
//
// covers F13, F15, F24, I1, I3, I20, I22, I27.
func TestStorms(t *testing.T) {
	c, err := Storms(2, 3)
	require.NoError(t, err)
	require.Positive(t, c.liveness.looked)
}

// The liveness check finds that there is no coordinator, and that shards have no home, when
// that has lasted too long.
//
// covers I27.
func TestPlantedLossOfCoordinatorAndHomes(t *testing.T) {
	c := New(Options{World: world.Options{Seed: 1}, Nodes: 3, Shards: 16})
	require.NoError(t, c.World.Run(c.liveness.within+30*time.Second))
	require.Positive(t, c.liveness.looked)
	require.NoError(t, c.liveness.look(c.World, time.Minute))
	c.World.Crash(Address(2))
	require.ErrorContains(t, c.liveness.look(c.World, time.Minute), "is hosted by 0 nodes")
	c.EndCoordinator(true)
	require.ErrorContains(t, c.liveness.look(c.World, time.Minute), "the coordinators are []")
	require.NoError(t, c.liveness.Second(c.World), "nothing is wrong yet: they have just gone")
}

// The ledger finds an entity for which more messages wait than its bound permits: here one.
//
// covers I36.
func TestPlantedMailboxThatIsTooLong(t *testing.T) {
	c := New(Options{World: world.Options{Seed: 1}, Nodes: 2, Behaviour: Behaviour{Hot: 1, HotRun: time.Second}})
	c.Ledger.mailbox = 1
	require.ErrorContains(t, c.World.Run(time.Minute), " messages wait for entity e")
}
