// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership/machine"
	"github.com/quorate/quorate/membership/simulation"
)

func cluster(opt simulation.Options, n int) *simulation.World {
	w := simulation.New(opt)
	simulation.ServeMembership(w)
	invariants := &simulation.Invariants{EachStep: n <= 20}
	invariants.Watch(w)
	operator := &simulation.Operator{Seeds: addresses(0, min(n, 3)), RestartAfter: 2 * time.Second}
	operator.Operate(w)
	component := simulation.Membership(simulation.MembershipConfig{})
	for i := range n {
		w.Start(address(i), func(env simulation.Env) []machine.Component {
			return []machine.Component{component(env)}
		})
	}
	return w
}

func requireSettled(t *testing.T, w *simulation.World, limit time.Duration) time.Duration {
	t.Helper()
	passed, err := w.RunUntil(limit, func() bool { return simulation.Settled(w) == nil })
	require.NoError(t, err)
	return passed
}

// covers F1, I9, I10.
func TestNodesFormACluster(t *testing.T) {
	w := cluster(simulation.Options{Seed: 1, CodecEvery: 1, RatePPM: 10_000}, 7)
	_, err := w.RunUntil(30*time.Second, func() bool { return simulation.Settled(w) == nil })
	if err != nil {
		for _, l := range w.Trace().Last(100) {
			t.Log(l)
		}
	}
	require.NoError(t, err, "%v", simulation.Settled(w))
	t.Log(w.Now(), w.Stats())
}
