// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// written runs a cluster under random faults whose entities write to a storage that refuses
// lower epochs, or to one that accepts everything if lax is set. With every other seed a
// witness decides which side of a split survives; that may be a minority.
func written(seed uint64, lax bool) (*simulation.Cluster, error) {
	opt := simulation.FaultyOptions(seed)
	witness := &membershipsim.Witness{}
	if seed%2 == 1 {
		opt.Membership.Downing = witness.Downing()
	}
	c := simulation.New(opt)
	if seed%2 == 1 {
		witness.Serve(c.World)
	}
	c.Ledger.Store.Lax = lax
	return simulation.RunFaults(c, simulation.Faults())
}

// stores is a number of seeds some of which show every event that a test of storages demands; fewer need not.
const stores = 12

// A storage that refuses lower epochs accepts the writes for the messages of an entity once
// and in order, however late writes arrive, and refuses no owner for good.
// covers I1, I20.
func TestAStoreWithEpochsIsWrittenInOrder(t *testing.T) {
	sum, n := summed(t, 2, func(seed uint64) (*simulation.Cluster, error) { return written(seed, false) })
	if n >= stores {
		require.NotZero(t, sum.Writes.Refused, "late writes of owners that were replaced")
	}
}

// When the storage accepts every epoch, the same worlds write out of order, and the check of
// the store finds that.
func TestAStoreWithoutEpochsIsFoundOut(t *testing.T) {
	for seed := range uint64(30) {
		if _, err := written(seed, true); err != nil {
			require.ErrorContains(t, err, "I20: the store accepts message")
			return
		}
	}
	require.Fail(t, "the seeds are green with a store that accepts everything")
}

// A storage that refuses lower epochs is written in order also when a minority survives a
// split: the majority hears from the witness too late, and the writes that it had under way
// arrive at a storage that has seen the epochs of the minority.
// covers F9, I1, I20.
func TestAStoreOfAMinorityThatSurvives(t *testing.T) {
	refused, minorities := 0, 0
	b := within(t, 2)
	for seed := range b.Seeds {
		opt, witness := simulation.FaultyOptions(seed), &membershipsim.Witness{}
		opt.Membership.Downing = witness.Downing()
		c := simulation.New(opt)
		b.Count(c.World)
		witness.Serve(c.World)
		minority := []gossip.Address{simulation.Address(0), simulation.Address(1)}
		majority := []gossip.Address{simulation.Address(2), simulation.Address(3), simulation.Address(4)}
		kept := false
		c.World.At(20*time.Second, func() {
			late := world.Calls{Min: 4 * time.Second, Max: 4 * time.Second}
			for _, a := range majority {
				c.World.Strategies().SetAt(a, late)
			}
			c.World.Network().Split(minority, majority)
		})
		c.World.At(50*time.Second, func() {
			for _, a := range minority {
				node := c.World.Node(a)
				kept = kept || node != nil && node.Generation() == 0 && simulation.Control(node).Inspect(simulation.KindName).Hosting > 0
			}
			c.World.Network().Heal()
			c.World.Strategies().Set(world.Calls{})
		})
		err := c.World.Run(60 * time.Second)
		if err == nil {
			err = c.Finish(150 * time.Second)
		}
		simulationtest.RequireRun(t, seed, err)
		if kept {
			minorities++
		}
		refused += c.Ledger.Counts().Writes.Refused
	}
	if b.Ran() >= stores {
		require.NotZero(t, minorities, "a minority survives")
	}
	t.Logf("%d seeds: a minority survived %d times, %d writes refused", b.Ran(), minorities, refused)
}
