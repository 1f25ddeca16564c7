// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/plugins/internal/wire"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

func marshal(f *testing.F, m proto.Message) []byte {
	f.Helper()
	b, err := proto.Marshal(m)
	require.NoError(f, err)
	return b
}

// FuzzPluginReply reads bytes as each answer that a plugin may give. Whatever is
// accepted is about the request alone.
//
// covers F60.
func FuzzPluginReply(f *testing.F) {
	least, err := allocation.NewLeastShard(allocation.Default().LeastShard)
	require.NoError(f, err)
	v := downingtest.RandomSplit(newRand(7))[0]
	ask, move := allocationtest.RandomAllocateRequest(newRand(7)), allocationtest.RandomRebalanceRequest(newRand(11))
	d, err := downing.KeepMajority{}.DecideNow(v)
	require.NoError(f, err)
	decision, err := wire.DecisionToProto(&v, &d)
	require.NoError(f, err)
	placed, err := wire.AllocateResultToProto(&ask, new(least.DecideAllocate(ask)))
	require.NoError(f, err)
	moved, err := wire.RebalanceResultToProto(&move, new(least.DecideRebalance(move)))
	require.NoError(f, err)
	for _, m := range []proto.Message{
		decision, placed, moved, &pluginv1.ConfigureResponse{Name: "n", Kind: 1, Errors: []*pluginv1.SettingError{{Key: "k", Reason: "r"}}},
	} {
		f.Add(marshal(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var decision pluginv1.DowningDecideResponse
		if proto.Unmarshal(b, &decision) == nil {
			if d, err := wire.DecisionFromProto(&v, &decision); err == nil {
				for _, id := range d.Down {
					require.NotNil(t, v.Member(id))
				}
				_ = downing.Check(v, downing.Class{MajorityOnly: true}, d)
			}
		}
		var placed pluginv1.AllocateResponse
		if proto.Unmarshal(b, &placed) == nil {
			if res, err := wire.AllocateResultFromProto(&ask, &placed); err == nil {
				require.LessOrEqual(t, len(res.Placements), len(ask.Shards))
				_ = allocation.CheckAllocate(&ask, &res)
			}
		}
		var moved pluginv1.RebalanceResponse
		if proto.Unmarshal(b, &moved) == nil {
			if res, err := wire.RebalanceResultFromProto(&move, &moved); err == nil {
				require.LessOrEqual(t, len(res.Moves), move.Budget.Room())
				_ = allocation.CheckRebalance(&move, &res)
			}
		}
		var configured pluginv1.ConfigureResponse
		if proto.Unmarshal(b, &configured) == nil {
			if m, err := wire.ManifestFromProto(&configured); err == nil {
				require.NotEmpty(t, m.Name)
				require.NotEmpty(t, m.Kind)
			}
		}
	})
}

// FuzzPluginRequest reads bytes as each request. Whatever is accepted can be sent
// again, and arrives the same.
func FuzzPluginRequest(f *testing.F) {
	v := downingtest.RandomSplit(newRand(7))[0]
	request, err := wire.ViewToProto(&v)
	require.NoError(f, err)
	ask, move := allocationtest.RandomAllocateRequest(newRand(7)), allocationtest.RandomRebalanceRequest(newRand(11))
	for _, m := range []proto.Message{request, wire.AllocateToProto(&ask), wire.RebalanceToProto(&move)} {
		f.Add(marshal(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var decide pluginv1.DowningDecideRequest
		if proto.Unmarshal(b, &decide) == nil {
			if v, err := wire.ViewFromProto(&decide); err == nil {
				p, err := wire.ViewToProto(&v)
				require.NoError(t, err)
				again, err := wire.ViewFromProto(p)
				require.NoError(t, err)
				requireSameView(t, v, again)
			}
		}
		var ask pluginv1.AllocateRequest
		if proto.Unmarshal(b, &ask) == nil {
			if r, err := wire.AllocateFromProto(&ask); err == nil && r.Validate() == nil {
				again, err := wire.AllocateFromProto(wire.AllocateToProto(&r))
				require.NoError(t, err)
				requireSameRegions(t, r.Regions, again.Regions)
				require.Equal(t, r.Shards, again.Shards)
			}
		}
		var move pluginv1.RebalanceRequest
		if proto.Unmarshal(b, &move) == nil {
			if r, err := wire.RebalanceFromProto(&move); err == nil && r.Validate() == nil {
				again, err := wire.RebalanceFromProto(wire.RebalanceToProto(&r))
				require.NoError(t, err)
				requireSameRegions(t, r.Regions, again.Regions)
				require.Equal(t, r.Budget, again.Budget)
			}
		}
	})
}
