// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/simulation"
)

// permanent runs a cluster under random faults in which most entities run without a message, and
// some starts and messages fail; with an odd seed the kind lives on the oldest node.
func permanent(seed uint64) (*simulation.Cluster, error) {
	opt := simulation.Troubled(seed)
	opt.World.Scenario = "sharding-permanent"
	opt.Shards, opt.Entities, opt.Permanent = 8, 24, 16
	opt.OnOldest = seed%2 == 1
	opt.Every = 100 * time.Millisecond // Most entities are started by no message.
	opt.Behaviour = simulation.Behaviour{FailStart: 0.2, FailRun: 0.1}
	return simulation.Suffer(simulation.New(opt), simulation.Faults())
}

// Entities that are permanent run at the homes of their shards once the faults are over, without
// a message and after failures, and at one node at a time before.
// covers I1, I10 for entities without messages.
func TestPermanentEntitiesRun(t *testing.T) {
	sum, _ := summed(t, few, permanent)
	require.NotZero(t, sum.Homes)
}
