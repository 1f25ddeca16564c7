// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/wire"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

const rounds = 500

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x717e)) }

// over sends a message through its bytes.
func over[M interface {
	proto.Message
	comparable
}](t testing.TB, m, to M,
) M {
	t.Helper()
	b, err := proto.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, proto.Unmarshal(b, to))
	return to
}

// decorate gives the members of a view what the random views leave empty.
func decorate(rnd *rand.Rand, v *downing.View) {
	members := make([]*gossip.Member, len(v.Members))
	for i, m := range v.Members {
		c := *m
		c.Zone = []string{"", "a", "b"}[rnd.IntN(3)]
		c.AppVersion = []string{"", "1.0.0", "a"}[rnd.IntN(3)]
		c.Roles = [][]string{nil, {"backend"}, {"back", "end"}, {"x"}}[rnd.IntN(4)]
		members[i] = &c
	}
	v.Members = members
	for i := range v.Unreachable {
		v.Unreachable[i].Version = 0 // Not in the contract.
	}
}

func TestViewsArriveAsTheyWere(t *testing.T) {
	for seed := range uint64(rounds) {
		rnd := newRand(seed)
		views := append(downingtest.RandomSplit(rnd), downingtest.RandomView(rnd))
		for _, v := range views {
			decorate(rnd, &v)
			v.Stable, v.Unstable = 3, 5
			r, err := wire.ViewToProto(&v)
			require.NoError(t, err)
			got, err := wire.ViewFromProto(over(t, r, &pluginv1.DowningDecideRequest{}))
			require.NoError(t, err, "seed %d", seed)
			requireSameView(t, v, got)
		}
	}
}

// requireSameView takes an empty list for a missing one.
func requireSameView(t testing.TB, want, got downing.View) {
	t.Helper()
	require.Equal(t, want.Self, got.Self)
	require.Equal(t, want.Members, got.Members)
	require.Equal(t, append([]gossip.Record{}, want.Unreachable...), got.Unreachable)
	require.Equal(t, append([]gossip.NodeID{}, want.Seen...), got.Seen)
	require.Equal(t, want.Base, got.Base)
	require.Equal(t, want.Stable, got.Stable)
	require.Equal(t, want.Unstable, got.Unstable)
}

func TestDecisionsArriveAsTheyWere(t *testing.T) {
	for seed := range uint64(rounds) {
		v := downingtest.RandomView(newRand(seed))
		d, err := downing.KeepMajority{}.DecideNow(v)
		require.NoError(t, err)
		p, err := wire.DecisionToProto(&v, &d)
		require.NoError(t, err)
		got, err := wire.DecisionFromProto(&v, over(t, p, &pluginv1.DowningDecideResponse{}))
		require.NoError(t, err)
		require.NoError(t, downing.Check(v, downing.Class{Pure: true, MajorityOnly: true}, got))
		if len(d.Down) == 0 {
			d.Down = nil
		}
		require.Equal(t, d, got, "seed %d", seed)
	}
}

func TestANodeThatIsNoMemberCannotBeNamed(t *testing.T) {
	v := downingtest.RandomView(newRand(1))
	_, err := wire.DecisionToProto(&v, &downing.Decision{Verdict: downing.KeepSide, Down: []gossip.NodeID{downingtest.Node(99)}})
	require.ErrorIs(t, err, wire.ErrMalformed)
	_, err = wire.DecisionFromProto(&v, &pluginv1.DowningDecideResponse{Down: []uint32{uint32(len(v.Members))}})
	require.ErrorIs(t, err, wire.ErrMalformed)
	// 256 would be the verdict none in the type that the leaf has for it.
	_, err = wire.DecisionFromProto(&v, &pluginv1.DowningDecideResponse{Verdict: 256})
	require.ErrorIs(t, err, wire.ErrMalformed)
}

func TestAllocateRequestsAndAnswersArriveAsTheyWere(t *testing.T) {
	least, err := allocation.NewLeastShard(allocation.Default().LeastShard)
	require.NoError(t, err)
	for seed := range uint64(rounds) {
		r := allocationtest.RandomAllocateRequest(newRand(seed))
		if len(r.Shards) > 0 && seed%3 == 0 {
			r.Shards[0].Requester = "a proxy"
		}
		got, err := wire.AllocateFromProto(over(t, wire.AllocateToProto(&r), &pluginv1.AllocateRequest{}))
		require.NoError(t, err)
		requireSameRegions(t, r.Regions, got.Regions)
		require.Equal(t, append([]allocation.Pending{}, r.Shards...), got.Shards)
		require.Equal(t, []any{r.Kind, r.Fitness}, []any{got.Kind, got.Fitness})

		res := least.DecideAllocate(r)
		p, err := wire.AllocateResultToProto(&r, &res)
		require.NoError(t, err)
		back, err := wire.AllocateResultFromProto(&r, over(t, p, &pluginv1.AllocateResponse{}))
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
		got, err := wire.RebalanceFromProto(over(t, wire.RebalanceToProto(&r), &pluginv1.RebalanceRequest{}))
		require.NoError(t, err)
		requireSameRegions(t, r.Regions, got.Regions)
		require.Equal(t, []any{r.Kind, r.Fitness, r.Budget}, []any{got.Kind, got.Fitness, got.Budget})

		res := least.DecideRebalance(r)
		p, err := wire.RebalanceResultToProto(&r, &res)
		require.NoError(t, err)
		back, err := wire.RebalanceResultFromProto(&r, over(t, p, &pluginv1.RebalanceResponse{}))
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

// Reasons of one kind are sent once; those that exceed the sum are replaced, and
// the answer says so.
func TestReasonsAreBounded(t *testing.T) {
	const shards = 3000
	r := allocation.AllocateRequest{Regions: []allocation.RegionState{{ID: "a"}}}
	res := allocation.AllocateResult{}
	for s := range allocation.Shard(shards) {
		r.Shards = append(r.Shards, allocation.Pending{Shard: s})
		reason := "" // The first ones have none.
		if s > 10 {
			reason = strings.Repeat("x", 1000) + string(rune('a'+s%26)) + string(rune('a'+s/26))
		}
		res.Placements = append(res.Placements, allocation.Placement{Shard: s, Region: "a", Reason: reason})
	}
	p, err := wire.AllocateResultToProto(&r, &res)
	require.NoError(t, err)
	require.LessOrEqual(t, proto.Size(p), plugins.AnswerBytesMax)
	back, err := wire.AllocateResultFromProto(&r, p)
	require.NoError(t, err)
	require.Empty(t, back.Placements[10].Reason)
	require.Equal(t, res.Placements[11], back.Placements[11])
	require.Equal(t, res.Placements[1000], back.Placements[1000])
	require.Equal(t, wire.ReasonsLeftOut, back.Placements[shards-1].Reason)
}

// What the limits were chosen for is far below them.
func TestGreatRequestsAndAnswersFit(t *testing.T) {
	least, err := allocation.NewLeastShard(allocation.Default().LeastShard)
	require.NoError(t, err)
	r := manyShards(1000, 300_000)
	require.Less(t, proto.Size(wire.AllocateToProto(&r)), plugins.RequestBytesMax/3)
	res := least.DecideAllocate(r)
	reasons := make([]string, 2000) // Of a sum that exceeds what may be sent.
	for i := range reasons {
		reasons[i] = fmt.Sprintf("%01000d", i)
	}
	for i := range res.Placements {
		res.Placements[i].Reason = reasons[i%len(reasons)]
	}
	p, err := wire.AllocateResultToProto(&r, &res)
	require.NoError(t, err)
	require.Less(t, proto.Size(p), plugins.AnswerBytesMax)

	members := downingtest.Members(gossip.MaxMembers)
	ids := downingtest.IDs(members)
	v := downing.View{Self: ids[0], Members: members, Seen: ids, Base: gossip.Base{ids}}
	for i := range 10 * len(members) { // Ten monitors complain about each.
		v.Unreachable = append(v.Unreachable, downingtest.Complaint(members[i/10].Node, members[(i+7)%len(members)].Node))
	}
	d, err := wire.ViewToProto(&v)
	require.NoError(t, err)
	require.Less(t, proto.Size(d), plugins.RequestBytesMax/3)
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

func TestLineIsSafeToLog(t *testing.T) {
	for _, c := range []struct {
		in, want string
		limit    int
	}{
		{"", "", 10},
		{"plain", "plain", 10},
		{"two\nlines\x1b[0m", "two lines [0m", 20},
		{"bad\xff", "bad?", 10},
		{"ééé", "éé", 4},
		{"ééé", "éé", 5},
		{"\xbf\xbf\xbf", "", 2},
		{"xxé", "xx", 3},
	} {
		require.Equal(t, c.want, wire.Line(c.in, c.limit), "%q", c.in)
	}
}
