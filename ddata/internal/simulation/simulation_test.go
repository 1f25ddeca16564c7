// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/internal/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// within returns the budget of a test that needs so many seeds at least: what two worlds handle.
func within(t *testing.T, least int) *simulationtest.Budget {
	return simulationtest.Within(t, least, 30_000)
}

// While members join, leave, crash and are removed, messages are lost, late and doubled and
// stores fail, every majority read returns what was acknowledged or read before, nothing
// deleted comes back, and each generation of a register has one value. In the end all
// replicas are equal, and nothing is left of tombstones and of nodes that are gone.
// covers F41, F43, F50, I16, I17, I18, I19, I22.
func TestChaos(t *testing.T) {
	b := within(t, 3)
	var sum simulation.History
	for seed := range b.Seeds {
		c, err := simulation.Chaos(seed, 3+int(seed%7))
		simulationtest.RequireRun(t, seed, err)
		b.Count(c.World)
		h := c.History
		sum.Acked += h.Acked
		sum.Reads += h.Reads
		sum.Deletes += h.Deletes
		sum.Taken += h.Taken
	}
	require.NotZero(t, sum.Acked)
	require.NotZero(t, sum.Reads)
	require.NotZero(t, sum.Deletes)
	require.NotZero(t, sum.Taken)
	t.Logf("%d seeds: %d writes, %d elements taken out and %d deletes acknowledged, %d reads", b.Ran(), sum.Acked, sum.Taken, sum.Deletes, sum.Reads)
}

// Keys that nobody changes expire on all replicas under the same faults, and nothing is left
// of them; no value is returned that nobody has written.
// covers F42, I18, I23.
func TestExpiry(t *testing.T) {
	b := within(t, 1)
	for seed := range b.Seeds {
		c, err := simulation.Expiry(seed, 3+int(seed%4))
		simulationtest.RequireRun(t, seed, err)
		b.Count(c.World)
	}
}

// When two of three homes of a bucket end at once, the set goes on to change and keys of other
// buckets are written within a bound; the bucket recovers when the homes are back with their
// disks, or when an operator has accepted the loss, which costs no other bucket anything; disks
// that come back after that change nothing. In memory nobody has to help, also when a majority of all ends.
// covers F41, I16, I17.
func TestHomes(t *testing.T) {
	b := within(t, 3)
	var lost, rescued, late, wentOn, anew int
	for seed := range b.Seeds {
		c, err := simulation.Homes(seed, 5+int(seed%5))
		simulationtest.RequireRun(t, seed, err)
		b.Count(c.World)
		lost, rescued, late, wentOn, anew = lost+min(c.Held, 1), rescued+c.Rescued, late+c.Late, wentOn+c.WentOn, anew+c.Anew
	}
	require.NotZero(t, lost)
	if b.Ran() >= 12 {
		require.NotZero(t, late)
		require.NotZero(t, wentOn)
		require.NotZero(t, anew)
	}
	t.Logf("%d seeds: buckets were held back in %d, and an operator accepted a loss %d times, disks came back after that %d times; in memory %d groups went on without a majority, %d buckets began anew",
		b.Ran(), lost, rescued, late, wentOn, anew)
}

// Runs that were red once, each with the fault of its own in docs/TRACK_RECORD.md.
func TestSeedsThatWereRed(t *testing.T) {
	for _, run := range []struct {
		world string
		nodes int
		seed  uint64
	}{
		{"data-homes", 7, 20261122190630},
		{"data-homes", 8, 20261122191742},
		{"data-older", 5, 20261122192467},
		{"data-older", 6, 20261122192911},
		{"data-older", 4, 811063},
		{"data-older", 4, 826055},
		{"data-older", 3, 1795383612208},
		{"data-older", 5, 1795383612232},
		{"data-copied", 6, 20261123010223},
		{"data-copied", 3, 20261123190862},
		{"data-expiry", 2, 20261123501183},
		{"data-older", 3, 20261123501473},
		{"data-older", 3, 20261123701077},
		{"data-expiry", 3, 20261123701951},
		{"data-chaos", 4, 7800017},
		{"data-chaos", 4, 7800012},
		{"data-homes", 6, 7800004},
		{"data-chaos", 6, 202611290619},
		{"data-older", 5, 1795933769876},
		{"data-expiry", 3, 1795944481439},
		{"data-homes", 3, 1795949500005},
	} {
		for _, s := range simulation.Scenarios() {
			if s.Name == run.world {
				_, err := s.Run(run.seed, run.nodes)
				require.NoError(t, err, "%+v", run)
			}
		}
	}
}

// Of two members that claim to be one replica, since a disk was copied, the one that has been up
// for longer is heard and no acknowledged write is lost; a copy whose first disk is gone is
// recognised as older.
// covers F50, I16, I19.
func TestCopied(t *testing.T) {
	b := within(t, 1)
	var copied, refused, aged, recognised int
	for seed := range b.Seeds {
		c, err := simulation.Copied(seed, 3+int(seed%4))
		simulationtest.RequireRun(t, seed, err)
		b.Count(c.World)
		copied, refused, aged, recognised = copied+c.Copied, refused+c.Refused, aged+c.Aged, recognised+c.Recognised
	}
	if b.Ran() >= 5 {
		require.NotZero(t, refused)
		require.NotZero(t, recognised)
	}
	t.Logf("%d seeds: %d disks were copied, which nodes noticed %d times; %d copies outlived the first disk, %d of them were recognised", b.Ran(), copied, refused, aged, recognised)
}

// The same seed gives the same run, to the byte.
// covers I30.
func TestRunIsAFunctionOfItsSeed(t *testing.T) {
	first, err := simulation.Chaos(3, 4)
	require.NoError(t, err)
	again, err := simulation.Chaos(3, 4)
	require.NoError(t, err)
	require.Equal(t, first.World.Trace().Hash(), again.World.Trace().Hash())
	require.Equal(t, first.History.Reads, again.History.Reads)
}

// A replica whose disk is put back to an older state is recognised, and no acknowledged write
// is lost by it; when all disks are put back together the cluster goes on from there.
// covers F50, I16, I19.
func TestOlder(t *testing.T) {
	b := within(t, 1)
	var aged, recognised, restored int
	for seed := range b.Seeds {
		c, err := simulation.Older(seed, 3+int(seed%4))
		simulationtest.RequireRun(t, seed, err)
		b.Count(c.World)
		aged, recognised, restored = aged+c.Aged, recognised+c.Recognised, restored+c.Restored
	}
	if b.Ran() >= 10 {
		require.NotZero(t, recognised)
		require.NotZero(t, restored)
	}
	t.Logf("%d seeds: %d disks came back older, %d were recognised; %d times all came back", b.Ran(), aged, recognised, restored)
}

// A replica that has acknowledged what its store lost with a crash is unsure, and no acknowledged
// write is lost by the crashes of so few that the others win; after a crash of all the group goes
// on by itself.
// covers F41, F43, I16, I17.
func TestBehind(t *testing.T) {
	b := within(t, 3)
	var tails, power, acked int
	for seed := range b.Seeds {
		c, err := simulation.WriteBehind(seed, 3+int(seed%5))
		simulationtest.RequireRun(t, seed, err)
		b.Count(c.World)
		tails, power, acked = tails+c.Tails, power+c.Power, acked+c.History.Acked
	}
	if b.Ran() >= 10 {
		require.NotZero(t, tails)
		require.NotZero(t, power)
	}
	require.NotZero(t, acked)
	t.Logf("%d seeds: %d writes acknowledged; %d crashes cut the end of a store, %d times all crashed", b.Ran(), acked, tails, power)
}
