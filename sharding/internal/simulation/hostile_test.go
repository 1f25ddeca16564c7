// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/simulation"
)

// lied runs a cluster under random faults, together with a hostile peer that lies to it all
// the time.
func lied(seed uint64) (*simulation.Cluster, error) {
	opt := simulation.FaultyOptions(seed)
	opt.Hostile = 5 * time.Millisecond
	return simulation.RunFaults(simulation.New(opt), simulation.Faults())
}

// liedAboutMemory is lied with entities that take their memory along, which the peer lies about too.
func liedAboutMemory(seed uint64) (*simulation.Cluster, error) {
	opt := simulation.FaultyOptions(seed)
	opt.Hostile = 5 * time.Millisecond
	opt.Behaviour.Snapshots.On = true
	return simulation.RunFaults(simulation.New(opt), simulation.Faults())
}

// A member that says of shards which live elsewhere that they have stopped, with a memory for their
// entities, has no effect.
// covers I1, I35.
func TestLiesAboutMemoryHaveNoEffect(t *testing.T) {
	sum, _ := summed(t, 1, liedAboutMemory)
	require.NotZero(t, sum.Memories.Restored)
}

// A hostile peer with a valid certificate, which speaks the protocol and lies, has no effect:
// neither as a stranger, nor as a member that speaks in the name of others. The checks that
// hold under random faults hold with such a peer too.
// covers I20, I35.
func TestLiesHaveNoEffect(t *testing.T) {
	sum, _ := summed(t, 1, lied)
	require.Greater(t, sum.Strangers, sum.Lies/4)
	require.Greater(t, sum.Forged, sum.Lies/8)
}
