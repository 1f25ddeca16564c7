// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/simulation"
)

// allFaults returns every fault of this package, for nodes that send pings.
func allFaults() []simulation.Fault {
	isPing := func(message any) bool { _, ok := message.(ping); return ok }
	traffic := simulation.Traffic{Types: []any{ping{}}, News: isPing, Heartbeat: isPing, Service: service}
	return slices.Concat(simulation.Faults(), simulation.PauseFaults(), simulation.LossFaults(traffic),
		simulation.LinkFaults(), simulation.OutsideFaults(), simulation.DiskFaults())
}

// tormented returns a world of five nodes after an hour of faults, and after the time
// that the longest fault takes to end.
func tormented(t *testing.T, seed uint64) *simulation.World {
	t.Helper()
	w := pingers(simulation.Options{Seed: seed, RatePPM: 10_000}, 5)
	w.Chaos(simulation.Chaos{For: time.Hour, Every: 5 * time.Second, Faults: allFaults()})
	require.NoError(t, w.Run(time.Hour+5*time.Minute))
	return w
}

// Every fault is injected and repaired, with a component that knows nothing of
// membership. covers I30.
func TestEveryFaultStrikesAndIsRepaired(t *testing.T) {
	w := tormented(t, 3)
	hash := w.Trace().Hash()
	struck := make(map[string]bool)
	for _, f := range w.Injected() {
		struck[f.Name] = true
	}
	for _, f := range allFaults() {
		require.True(t, struck[f.Name], f)
	}
	w.Repair()
	_, quiet := w.Quiet()
	require.True(t, quiet)
	require.Len(t, w.Nodes(), 5)
	require.NoError(t, w.Run(3*time.Second))
	before := len(machineOf(w, 4).heard["n000"])
	require.NoError(t, w.Run(10*time.Second))
	require.Greater(t, len(machineOf(w, 4).heard["n000"]), before+8)
	require.Equal(t, hash, tormented(t, 3).Trace().Hash(), "one seed, one run")
}
