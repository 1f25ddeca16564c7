// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	world "github.com/quorate/quorate/simulation"
)

// Pauses of many, losses by type and bad links leave a cluster that has a coordinator
// and homes in time.
//
// covers F13, F15, F24, I1, I3, I20, I22, I27.
func TestStorms(t *testing.T) {
	c, err := Storms(2, 3)
	require.NoError(t, err)
	require.Positive(t, c.liveness.looked)
}

// A coordinator that is gone, and homes that are, are found, if they stay away.
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

// Entities that hold more messages than they may are found: here they may hold one.
//
// covers I36.
func TestPlantedMailboxThatIsTooLong(t *testing.T) {
	c := New(Options{World: world.Options{Seed: 1}, Nodes: 2, Behaviour: Behaviour{Hot: 1, HotRun: time.Second}})
	c.Ledger.mailbox = 1
	require.ErrorContains(t, c.World.Run(time.Minute), " messages wait for entity e")
}
