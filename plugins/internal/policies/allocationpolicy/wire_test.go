// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocationpolicy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/policies/allocationpolicy"
	"github.com/quorate/quorate/plugins/internal/wire"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

const rounds = 500

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x717e)) }

func TestAllocateRequestsAndAnswersArriveAsTheyWere(t *testing.T) {
	least, err := allocation.NewLeastShard(allocation.Default().LeastShard)
	require.NoError(t, err)
	for seed := range uint64(rounds) {
		r := allocationtest.RandomAllocateRequest(newRand(seed))
		if len(r.Shards) > 0 && seed%3 == 0 {
			r.Shards[0].Requester = "a proxy"
		}
		got, err := allocationpolicy.AllocateFromProto(wiretest.Over(t, allocationpolicy.AllocateToProto(&r), &pluginv1.AllocateRequest{}))
		require.NoError(t, err)
		requireSameRegions(t, r.Regions, got.Regions)
		require.Equal(t, append([]allocation.Pending{}, r.Shards...), got.Shards)
		require.Equal(t, []any{r.Kind, r.Fitness}, []any{got.Kind, got.Fitness})

		res := least.DecideAllocate(r)
		p, err := allocationpolicy.AllocateResultToProto(&r, &res)
		require.NoError(t, err)
		back, err := allocationpolicy.AllocateResultFromProto(&r, wiretest.Over(t, p, &pluginv1.AllocateResponse{}))
		require.NoError(t, err)
		require.Equal(t, res, back, "seed %d", seed)
	}
}

func TestRebalanceRequestsAndAnswersArriveAsTheyWere(t *testing.T) {
	least, err := allocation.NewLeastShard(allocation.Default().LeastShard)
	require.NoError(t, err)
	for seed := range uint64(rounds) {
		r := allocationtest.RandomRebalanceRequest(newRand(seed))
		if len(r.Budget.InFlight) > 0 && seed%3 == 0 {
			r.Budget.InFlight[0].To = "one that was removed"
		}
		got, err := allocationpolicy.RebalanceFromProto(wiretest.Over(t, allocationpolicy.RebalanceToProto(&r), &pluginv1.RebalanceRequest{}))
		require.NoError(t, err)
		requireSameRegions(t, r.Regions, got.Regions)
		require.Equal(t, []any{r.Kind, r.Fitness, r.Budget}, []any{got.Kind, got.Fitness, got.Budget})

		res := least.DecideRebalance(r)
		p, err := allocationpolicy.RebalanceResultToProto(&r, &res)
		require.NoError(t, err)
		back, err := allocationpolicy.RebalanceResultFromProto(&r, wiretest.Over(t, p, &pluginv1.RebalanceResponse{}))
		require.NoError(t, err)
		require.Equal(t, res.Reason, back.Reason)
		require.Equal(t, append([]allocation.Move{}, res.Moves...), append([]allocation.Move{}, back.Moves...), "seed %d", seed)
	}
}

func requireSameRegions(t testing.TB, want, got []allocation.RegionState) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i], got[i])
	}
}

// Reasons beyond the sum that an answer may have are replaced by a text that says so.
// A load that is no number has no place in an order of regions. covers B60.
func TestALoadThatIsNoNumberIsRefused(t *testing.T) {
	for _, load := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		r := allocation.AllocateRequest{Kind: "k", Regions: []allocation.RegionState{{ID: "a", Load: 0.5}, {ID: "b", Load: load}}}
		_, err := allocationpolicy.AllocateFromProto(allocationpolicy.AllocateToProto(&r))
		require.ErrorIs(t, err, wire.ErrMalformed)
		require.ErrorContains(t, err, "regions.load")
		m := allocation.RebalanceRequest{Kind: "k", Regions: r.Regions}
		_, err = allocationpolicy.RebalanceFromProto(allocationpolicy.RebalanceToProto(&m))
		require.ErrorIs(t, err, wire.ErrMalformed)
	}
}

func TestReasonsAreBounded(t *testing.T) {
	const shards = 3000
	r := allocation.AllocateRequest{Regions: []allocation.RegionState{{ID: "a"}}}
	res := allocation.AllocateResult{}
	for s := range allocation.Shard(shards) {
		r.Shards = append(r.Shards, allocation.Pending{Shard: s})
		reason := "" // The first placements have none.
		if s > 10 {
			reason = strings.Repeat("x", 1000) + string(rune('a'+s%26)) + string(rune('a'+s/26))
		}
		res.Placements = append(res.Placements, allocation.Placement{Shard: s, Region: "a", Reason: reason})
	}
	p, err := allocationpolicy.AllocateResultToProto(&r, &res)
	require.NoError(t, err)
	require.LessOrEqual(t, proto.Size(p), plugins.MaxAnswerBytes)
	back, err := allocationpolicy.AllocateResultFromProto(&r, p)
	require.NoError(t, err)
	require.Empty(t, back.Placements[10].Reason)
	require.Equal(t, res.Placements[11], back.Placements[11])
	require.Equal(t, res.Placements[1000], back.Placements[1000])
	require.Equal(t, allocationpolicy.ReasonsLeftOut, back.Placements[shards-1].Reason)
}

// A request about a thousand regions and 300,000 shards has less than a third of its limit.
// The answer fits too, although its reasons exceed what may be sent.
func TestGreatRequestsAndAnswersFit(t *testing.T) {
	least, err := allocation.NewLeastShard(allocation.Default().LeastShard)
	require.NoError(t, err)
	r := manyShards(1000, 300_000)
	require.Less(t, proto.Size(allocationpolicy.AllocateToProto(&r)), plugins.MaxRequestBytes/3)
	res := least.DecideAllocate(r)
	reasons := make([]string, 2000)
	for i := range reasons {
		reasons[i] = fmt.Sprintf("%01000d", i)
	}
	for i := range res.Placements {
		res.Placements[i].Reason = reasons[i%len(reasons)]
	}
	p, err := allocationpolicy.AllocateResultToProto(&r, &res)
	require.NoError(t, err)
	require.Less(t, proto.Size(p), plugins.MaxAnswerBytes)
}

func manyShards(regions, shards int) allocation.AllocateRequest {
	var r allocation.AllocateRequest
	for i := range regions {
		r.Regions = append(r.Regions, allocation.RegionState{ID: allocation.Region(downingtest.Node(i).String()), Zone: "a", Roles: []string{"backend"}})
	}
	for s := range shards {
		r.Shards = append(r.Shards, allocation.Pending{Shard: allocation.Shard(s), Requester: r.Regions[s%regions].ID})
	}
	return r
}
