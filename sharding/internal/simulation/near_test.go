// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// near runs a cluster under random faults, in which few entities are always at work, and get
// most of their messages from senders of their own node.
func near(seed uint64) (*simulation.Cluster, error) {
	opt := simulation.Troubled(seed)
	opt.World.Scenario = "sharding-near"
	opt.Near, opt.Every = 0.7, 3*time.Millisecond
	opt.Behaviour.Hot, opt.Behaviour.HotRun = 4, 15*time.Millisecond
	opt.Behaviour.SlowStop = 0 // Else messages wait behind stops, and mailboxes are full.
	c := simulation.New(opt)
	c.World.After(15*time.Second, func() {
		c.World.Chaos(world.Chaos{For: 20 * time.Second, Every: 4 * time.Second, Faults: simulation.Faults()})
	})
	if err := c.World.Run(40 * time.Second); err != nil {
		return c, err
	}
	return c, c.Finish(150 * time.Second)
}

// Messages to an entity of the same node that is at work go straight into its mailbox, many
// are handled in runs, and entities that keep their workers do not keep others waiting. In all
// this order, deadlines, outcomes and the look at the standing are as ever.
// covers F24, F42, I1, I14, I20.
func TestBusyEntitiesNearTheirSenders(t *testing.T) {
	first, n := simulationtest.Seeds(t, few)
	var sum simulation.Counts
	for seed := first; seed < first+n; seed++ {
		c, err := near(seed)
		simulationtest.RequireRun(t, seed, err)
		counts := c.Ledger.Counts()
		require.NotZero(t, counts.Joined, "seed %d", seed)
		require.NotZero(t, counts.Followed, "seed %d", seed)
		require.NotZero(t, counts.Replaced, "seed %d", seed)
		sum.Joined += counts.Joined
		sum.Followed += counts.Followed
		sum.Replaced += counts.Replaced
		sum.Processed += counts.Processed
	}
	t.Logf("%d seeds: %d messages processed, %d went straight into mailboxes, %d followed in runs; %d workers replaced others",
		n, sum.Processed, sum.Joined, sum.Followed, sum.Replaced)
}
