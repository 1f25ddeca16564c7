// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdktest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins/sdk/sdktest"
)

// BenchmarkDecideOverWire measures a decision of keep-majority about a cluster of which a
// tenth is unreachable, over gRPC within the process, without TLS.
func BenchmarkDecideOverWire(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			members := downingtest.Members(n)
			// Three members complain about each of a tenth of the members, as they would
			// when these have died.
			v := downingtest.SplitView(members, func(gossip.NodeID) bool { return true }, gossip.Base{downingtest.IDs(members[:min(n, 10)])})
			v.Seen = v.Seen[:n-n/10]
			for _, lost := range members[n-n/10:] {
				for _, observer := range members[:3] {
					v.Unreachable = append(v.Unreachable, downingtest.Complaint(observer.Node, lost.Node))
				}
			}
			p := sdktest.Downing(b, served(downing.KeepMajority{}), nil)
			b.ReportAllocs()
			for b.Loop() {
				if d, err := p.Decide(b.Context(), v); err != nil || d.Verdict != downing.KeepSide {
					b.Fatal(d, err)
				}
			}
		})
	}
}

// BenchmarkAllocateOverWire allocates all shards of a kind in batches, as a coordinator
// does: each request says where the shards of earlier batches went.
func BenchmarkAllocateOverWire(b *testing.B) {
	for _, size := range []struct{ regions, shards, batch int }{{3, 1_000, 1_000}, {100, 100_000, 10_000}, {100, 100_000, 100_000}} {
		b.Run(fmt.Sprintf("regions=%d/shards=%d/batch=%d", size.regions, size.shards, size.batch), func(b *testing.B) {
			s := sdktest.Allocation(b, leastShard(), nil)
			b.ReportAllocs()
			for b.Loop() {
				allocateAll(b, s, size.regions, size.shards, size.batch)
			}
		})
	}
}

func allocateAll(b *testing.B, s allocation.Strategy, regions, shards, batch int) {
	b.Helper()
	r := allocation.AllocateRequest{Kind: "account", Regions: make([]allocation.RegionState, regions)}
	at := map[allocation.Region]int{}
	for i := range r.Regions {
		r.Regions[i].ID = allocation.Region(downingtest.Node(i).String())
		at[r.Regions[i].ID] = i
	}
	for first := 0; first < shards; first += batch {
		r.Shards = r.Shards[:0]
		for s := first; s < min(first+batch, shards); s++ {
			r.Shards = append(r.Shards, allocation.Pending{Shard: allocation.Shard(s)})
		}
		res, err := s.Allocate(b.Context(), r)
		require.NoError(b, err)
		require.Len(b, res.Placements, len(r.Shards))
		for _, p := range res.Placements {
			home := &r.Regions[at[p.Region]]
			home.Shards = append(home.Shards, p.Shard)
		}
	}
}
