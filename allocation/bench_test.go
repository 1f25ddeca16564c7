// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/allocation"
)

func BenchmarkAllocate(b *testing.B) {
	for _, size := range []struct{ shards, regions int }{{1, 5}, {1_000, 5}, {100_000, 3}, {100_000, 1_000}} {
		b.Run(fmt.Sprintf("shards=%d/regions=%d", size.shards, size.regions), func(b *testing.B) {
			l := leastShard(b, 100, 0.1)
			r := allocation.AllocateRequest{Regions: manyRegions(size.regions, 0), Shards: pending(0, size.shards)}
			b.ReportAllocs()
			for b.Loop() {
				if len(l.DecideAllocate(r).Placements) != size.shards {
					b.Fatal("shards were left out")
				}
			}
		})
	}
}

func BenchmarkRebalance(b *testing.B) {
	for _, size := range []struct{ shards, regions int }{{1_000, 5}, {100_000, 3}, {100_000, 1_000}} {
		b.Run(fmt.Sprintf("shards=%d/regions=%d", size.shards, size.regions), func(b *testing.B) {
			l := leastShard(b, 100, 0.1)
			rs := manyRegions(size.regions, size.shards/size.regions)
			rs[0].Shards = nil
			r := allocation.RebalanceRequest{Regions: rs, Fitness: fit, Budget: allocation.Budget{Simultaneous: 100}}
			b.ReportAllocs()
			for b.Loop() {
				if len(l.DecideRebalance(r).Moves) == 0 {
					b.Fatal("nothing moves")
				}
			}
		})
	}
}

func BenchmarkConsistentHashing(b *testing.B) {
	for _, size := range []struct{ shards, regions int }{{1_000, 5}, {10_000, 100}} {
		b.Run(fmt.Sprintf("shards=%d/regions=%d", size.shards, size.regions), func(b *testing.B) {
			h := consistent(b, 100, 0.1)
			r := allocation.RebalanceRequest{
				Regions: manyRegions(size.regions, size.shards/size.regions), Fitness: fit, Budget: allocation.Budget{Simultaneous: 100},
			}
			b.ReportAllocs()
			for b.Loop() {
				if len(h.DecideRebalance(r).Moves) == 0 {
					b.Fatal("nothing moves")
				}
			}
		})
	}
}

func BenchmarkCheckAllocate(b *testing.B) {
	l := leastShard(b, 100, 0.1)
	r := allocation.AllocateRequest{Regions: manyRegions(3, 0), Shards: pending(0, 100_000)}
	res := l.DecideAllocate(r)
	b.ReportAllocs()
	for b.Loop() {
		if err := allocation.CheckAllocate(&r, &res); err != nil {
			b.Fatal(err)
		}
	}
}

func manyRegions(n, shardsEach int) []allocation.RegionState {
	out := make([]allocation.RegionState, n)
	for i := range out {
		out[i].ID = allocation.Region(fmt.Sprintf("10.0.%d.%d:7946#1", i/256, i%256))
		for s := range shardsEach {
			out[i].Shards = append(out[i].Shards, allocation.Shard(i*shardsEach+s))
		}
	}
	return out
}
