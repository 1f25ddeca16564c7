// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/control"
)

// slow is a kind of 400 shards whose regions start within a minute.
func slow() control.KindConfig {
	k := wide(400)
	k.Timings.SlowStart = time.Minute
	return k
}

// A region that joins others gets a tenth of its part, and the rest in the time of a slow start. No
// shard moves but to it, and none moves twice.
// covers F37, I21.
func TestARegionStartsSlowly(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, slow())
	f.run(2 * time.Minute)
	nodes = append(nodes, f.start(4, slow()))
	has := 0
	for second := 1; second <= 90; second++ {
		f.run(time.Second)
		now := spread(nodes[3])[0]
		require.GreaterOrEqual(t, now, has, "after %d s", second)
		if has = now; second < 60 {
			// A part of capacity p beside three of 1 is p/(3+p) of the shards.
			p := 0.1 + 0.9*float64(second)/60
			require.LessOrEqual(t, float64(now), 400*p/(3+p)+1, "after %d s", second)
		}
		if second == 5 {
			require.GreaterOrEqual(t, now, 12, "a tenth beside three wholes")
		}
	}
	require.Equal(t, []int{100, 100, 100, 100}, spread(nodes...))
	moves := nodes[0].Moves("k")
	require.Len(t, moves, 100)
	for _, m := range moves {
		require.Equal(t, nodes[3].id, m.To)
	}
	require.Contains(t, strings.Join(nodes[0].decided("allocation"), "; "), "k: slow start: "+nodes[3].id.String()+" starts with 10% of its part, which rises for 1m0s")
}

// A region that is starting gets no more of the shards that another one leaves than its part, under
// the coordinator that saw it come and under the next, which knows its age from its report.
// covers F34, F37, I21.
func TestARegionThatStartsIsSparedWhenAnotherGoes(t *testing.T) {
	for name, goes := range map[string]int{"a region": 1, "the coordinator": 0} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			nodes := f.cluster(3, slow())
			f.run(2 * time.Minute)
			newcomer := f.start(4, slow())
			f.run(5 * time.Second)
			f.remove(nodes[goes])
			f.fence(nodes[goes])
			f.run(5 * time.Second)
			rest := append(append(nodes[:goes:goes], nodes[goes+1:]...), newcomer)
			f.settled(400, rest...)
			require.LessOrEqual(t, len(newcomer.hosting), 400*25/225, "%v", spread(rest...))
			f.run(2 * time.Minute)
			require.InDeltaSlice(t, []int{133, 133, 133}, spread(rest...), 1)
		})
	}
}

// A cluster that starts is even at once, however far apart its nodes start within the time of a
// slow start; so is one without a slow start, and one that gets rid of it by a reload.
func TestAClusterStartsAtOnce(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(1, slow())
	f.run(20 * time.Second)
	nodes = append(nodes, f.start(2, slow()))
	f.run(20 * time.Second)
	nodes = append(nodes, f.start(3, slow()))
	f.run(10 * time.Second)
	require.InDeltaSlice(t, []int{133, 133, 133}, spread(nodes...), 1)

	f.run(time.Minute)
	nodes = append(nodes, f.start(4, slow()))
	f.run(10 * time.Second)
	require.Less(t, spread(nodes...)[3], 30)
	for _, n := range nodes {
		n.step(reload())
	}
	f.run(5 * time.Second)
	require.Equal(t, []int{100, 100, 100, 100}, spread(nodes...))
}

// Capacities keep their proportions while a region starts, also the greatest there are; and a
// region that does not say its age has its whole part.
func TestASlowStartKeepsCapacities(t *testing.T) {
	for _, capacities := range [][]uint32{{0, 1, 2}, {1 << 20, 1 << 20, 1 << 31}, {30_000, 30_000, 60_000}} {
		f := newFleet(t)
		var nodes []*peer
		for i, c := range capacities {
			k := slow()
			k.Capacity = c
			if nodes = append(nodes, f.start(i+1, k)); i == 0 {
				f.run(time.Second)
			} else {
				f.run(90 * time.Second)
			}
		}
		second, third := min(capacities[1], 1<<20), min(capacities[2], 1<<20)
		all := float64(max(capacities[0], 1)) + float64(second) + float64(third)
		require.InDelta(t, 400*float64(third)/all, len(nodes[2].hosting), 1, "%v: %v", capacities, spread(nodes...))
	}

	f := newFleet(t)
	nodes := f.cluster(2, slow())
	f.run(2 * time.Minute)
	p := f.puppet(3)
	p.say(nodes[0], control.Register{Kind: "k", Registration: control.Registration{Settings: slow().Settings}})
	f.run(time.Second)
	require.NotContains(t, strings.Join(nodes[0].decided("allocation"), "; "), "slow start")
}
