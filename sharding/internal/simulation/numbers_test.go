// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// named runs a cluster under random faults whose nodes send most messages in batches, in sessions
// that often break, over a network that loses, doubles and reorders envelopes.
func named(seed uint64) (*simulation.Cluster, error) {
	opt := simulation.Troubled(seed)
	opt.World.Scenario = "sharding-named"
	opt.World.Network = world.Delivery{Loss: 0.01, Double: 0.02, Late: 0.05, LateMax: 3 * time.Second}
	opt.Nodes, opt.Shards, opt.Every = 4, 12, 2*time.Millisecond
	opt.Behaviour = simulation.Behaviour{LaneBusy: true, LaneFull: 0.02, LaneDown: 0.01, LaneStall: 0.01, Run: time.Millisecond}
	return simulation.Shake(simulation.New(opt), world.Chaos{For: 10 * time.Second, Every: 3 * time.Second, Faults: simulation.Faults()})
}

// Parts of batches that name their stream by a number are delivered as those that spell it out:
// once and in order, whatever becomes of the batch that has defined the number, and of the
// session. What names a number that its host does not know comes again.
// covers I1, I20, I21.
func TestStreamsByNumber(t *testing.T) {
	sum, _ := summed(t, few, named)
	require.NotZero(t, sum.Unnamed)
}
