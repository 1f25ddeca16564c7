// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	world "github.com/quorate/quorate/simulation"
)

// A forged reply names the oldest ask of its victim. If it depended on the order of a map,
// two runs with one seed would differ.
func TestAForgedReplyNamesTheOldestAsk(t *testing.T) {
	victim := new(world.Node)
	asks := make(map[uint64]*ask)
	for id := uint64(1); id <= 8; id++ {
		asks[id] = &ask{shard: protocol.ShardID(id)}
	}
	h := &hostile{cluster: &Cluster{Ledger: &Ledger{nodes: map[gossip.NodeID]*Cells{victim.ID(): {asks: asks}}}}}
	for range 32 {
		item, err := wire.DecodeItem(h.reply(victim, control.Home{}), 0)
		require.NoError(t, err)
		reply, ok := item.(*protocol.Reply)
		require.True(t, ok)
		require.Equal(t, uint64(1), reply.Correlation)
		require.Equal(t, protocol.ShardID(1), reply.Shard)
	}
}
