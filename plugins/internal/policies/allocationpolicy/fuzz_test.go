// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocationpolicy_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
	"github.com/quorate/quorate/plugins/internal/policies/allocationpolicy"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

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
		f.Add(wiretest.Bytes(f, m))
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
		f.Add(wiretest.Bytes(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, again, ok := wiretest.Again(t, b, new(pluginv1.AllocateRequest), readAllocate, writeAllocate); ok {
			requireSameRegions(t, r.Regions, again.Regions)
			require.Equal(t, r.Shards, again.Shards)
		}
		if r, again, ok := wiretest.Again(t, b, new(pluginv1.RebalanceRequest), readRebalance, writeRebalance); ok {
			requireSameRegions(t, r.Regions, again.Regions)
			require.Equal(t, r.Budget, again.Budget)
		}
	})
}

// readAllocate and the three after it are one way of a request each, for those that
// strategies may get: they are valid, and sending them cannot fail.
func readAllocate(p *pluginv1.AllocateRequest) (allocation.AllocateRequest, error) {
	r, err := allocationpolicy.AllocateFromProto(p)
	return r, errors.Join(err, r.Validate())
}

func writeAllocate(r *allocation.AllocateRequest) (*pluginv1.AllocateRequest, error) {
	return allocationpolicy.AllocateToProto(r), nil
}

func readRebalance(p *pluginv1.RebalanceRequest) (allocation.RebalanceRequest, error) {
	r, err := allocationpolicy.RebalanceFromProto(p)
	return r, errors.Join(err, r.Validate())
}

func writeRebalance(r *allocation.RebalanceRequest) (*pluginv1.RebalanceRequest, error) {
	return allocationpolicy.RebalanceToProto(r), nil
}
