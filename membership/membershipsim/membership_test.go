// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

func address(i int) gossip.Address {
	return gossip.Address{Host: fmt.Sprintf("n%03d", i), Port: 7946}
}

func addresses(from, to int) []gossip.Address {
	var all []gossip.Address
	for i := from; i < to; i++ {
		all = append(all, address(i))
	}
	return all
}

func cluster(opt simulation.Options, n int) (*simulation.World, *membershipsim.Invariants) {
	w := simulation.New(opt)
	membershipsim.Serve(w)
	invariants := &membershipsim.Invariants{}
	invariants.Watch(w)
	operator := &membershipsim.Operator{Seeds: addresses(0, min(n, 3)), RestartAfter: 2 * time.Second}
	operator.Operate(w)
	component := membershipsim.Component(membershipsim.Config{})
	for i := range n {
		w.Start(address(i), func(env simulation.Env) []machine.Component {
			return []machine.Component{component(env)}
		})
	}
	return w, invariants
}

func requireSettled(t *testing.T, w *simulation.World, limit time.Duration) time.Duration {
	t.Helper()
	passed, err := w.RunUntil(limit, func() bool { return membershipsim.Settled(w) == nil })
	require.NoError(t, err)
	return passed
}

// covers F1, I9, I10.
func TestNodesFormACluster(t *testing.T) {
	w, invariants := cluster(simulation.Options{Seed: 1, CodecEvery: 1, RatePPM: 10_000}, 7)
	requireSettled(t, w, 30*time.Second)
	require.Equal(t, w.Stats().Sent, w.Stats().Codec, "every message went through the codec of production")
	require.NoError(t, w.Run(10*time.Second))
	for _, n := range w.Nodes() {
		require.True(t, invariants.Hosts(n), "%v has standing", n.ID())
	}
}

// An idle cluster costs what its heartbeats and rounds cost.
func BenchmarkIdleCluster(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			w, _ := cluster(simulation.Options{Seed: 1, RatePPM: 10_000}, n)
			formed, err := w.RunUntil(2*time.Minute, func() bool { return membershipsim.Settled(w) == nil })
			if err != nil {
				b.Fatal(err, membershipsim.Settled(w))
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := w.Run(time.Second); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(formed.Seconds(), "virtual-s-to-form")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "x-real-time")
		})
	}
}
