// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocationpolicy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
	"github.com/quorate/quorate/plugins/internal/policies/allocationpolicy"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

func marshal(f *testing.F, m proto.Message) []byte {
	f.Helper()
	b, err := proto.Marshal(m)
	require.NoError(f, err)
	return b
}

// FuzzReply reads bytes as each answer that a plugin may give. An answer that is accepted
// names nothing that is not in the request.
//
// covers F60.
func FuzzReply(f *testing.F) {
	least, err := allocation.NewLeastShard(allocation.Default().LeastShard)
	require.NoError(f, err)
	ask, move := allocationtest.RandomAllocateRequest(newRand(7)), allocationtest.RandomRebalanceRequest(newRand(11))
	placed, err := allocationpolicy.AllocateResultToProto(&ask, new(least.DecideAllocate(ask)))
	require.NoError(f, err)
	moved, err := allocationpolicy.RebalanceResultToProto(&move, new(least.DecideRebalance(move)))
	require.NoError(f, err)
	for _, m := range []proto.Message{placed, moved} {
		f.Add(marshal(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var placed pluginv1.AllocateResponse
		if proto.Unmarshal(b, &placed) == nil {
			if res, err := allocationpolicy.AllocateResultFromProto(&ask, &placed); err == nil {
				require.LessOrEqual(t, len(res.Placements), len(ask.Shards))
				_ = allocation.CheckAllocate(&ask, &res)
			}
		}
		var moved pluginv1.RebalanceResponse
		if proto.Unmarshal(b, &moved) == nil {
			if res, err := allocationpolicy.RebalanceResultFromProto(&move, &moved); err == nil {
				require.LessOrEqual(t, len(res.Moves), move.Budget.Room())
				_ = allocation.CheckRebalance(&move, &res)
			}
		}
	})
}

// FuzzRequest reads bytes as each request. A request that is accepted can be sent again, and
// arrives as it was.
func FuzzRequest(f *testing.F) {
	ask, move := allocationtest.RandomAllocateRequest(newRand(7)), allocationtest.RandomRebalanceRequest(newRand(11))
	for _, m := range []proto.Message{allocationpolicy.AllocateToProto(&ask), allocationpolicy.RebalanceToProto(&move)} {
		f.Add(marshal(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var ask pluginv1.AllocateRequest
		if proto.Unmarshal(b, &ask) == nil {
			if r, err := allocationpolicy.AllocateFromProto(&ask); err == nil && r.Validate() == nil {
				again, err := allocationpolicy.AllocateFromProto(allocationpolicy.AllocateToProto(&r))
				require.NoError(t, err)
				requireSameRegions(t, r.Regions, again.Regions)
				require.Equal(t, r.Shards, again.Shards)
			}
		}
		var move pluginv1.RebalanceRequest
		if proto.Unmarshal(b, &move) == nil {
			if r, err := allocationpolicy.RebalanceFromProto(&move); err == nil && r.Validate() == nil {
				again, err := allocationpolicy.RebalanceFromProto(allocationpolicy.RebalanceToProto(&r))
				require.NoError(t, err)
				requireSameRegions(t, r.Regions, again.Regions)
				require.Equal(t, r.Budget, again.Budget)
			}
		}
	})
}
