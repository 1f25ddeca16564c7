// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	world "github.com/quorate/quorate/simulation"
)

// The check of the store finds an owner with standing that the store refuses for good,
// because the store has seen a higher epoch: while the cluster runs, and at the end of a run.
func TestAnOwnerThatIsRefusedForGoodIsFound(t *testing.T) {
	plant := func() *Cluster {
		c := New(Options{World: world.Options{Seed: 1}, Nodes: 3, Shards: 4, Entities: 4, Every: 50 * time.Millisecond})
		require.NoError(t, c.World.Run(15*time.Second))
		r := c.Ledger.Store.row(entity(1))
		require.False(t, r.epoch.IsZero(), "it has been written")
		r.epoch.N += 1000
		return c
	}
	require.ErrorContains(t, plant().World.Run(refusedFor+5*time.Second), "is refused as the owner of e1")
	require.ErrorContains(t, plant().Finish(10*time.Second), "would refuse its home")
}
