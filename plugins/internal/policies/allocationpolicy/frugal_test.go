// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocationpolicy_test

import (
	"context"
	"testing"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/policies/allocationpolicy"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// What a plugin answers costs no more than it has bytes, times a small number.
func TestAnswersAreDecodedFrugally(t *testing.T) {
	placed := &pluginv1.AllocateResponse{Shard: []uint32{0, 1}, Region: []uint32{0, 1}, Reason: []uint32{0, 1}, Reasons: []string{"few", "fewer"}}
	wiretest.FrugalTrial(t, allocationpolicy.Contract().Policy(), placed)
	r := allocation.RebalanceRequest{
		Kind: "example", Regions: []allocation.RegionState{{ID: "a", Shards: []allocation.Shard{0, 1}}, {ID: "b"}},
		Budget: allocation.Budget{Simultaneous: 5, PerRegion: 5},
	}
	moves := &pluginv1.RebalanceResponse{Shard: []uint32{0}, From: []uint32{0}, To: []uint32{1}, Reason: []uint32{0}, Reasons: []string{"few"}}
	wiretest.Frugal(t, func(ctx context.Context, plugin client.Target) error {
		_, err := allocationpolicy.New(plugin).Rebalance(ctx, r)
		return err
	}, wiretest.Bytes(t, moves))
}
