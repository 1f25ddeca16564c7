// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/memory"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Every store takes the names, whatever a cluster and a kind are called, and no two shards have the same.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	words := []string{"bank", "Bank", "bank-", "ba-nk", "b", "日本", "..", strings.Repeat("k", protocol.MaxKindBytes), "account/1"}
	for _, cluster := range words {
		for _, kind := range words {
			for _, shard := range []protocol.ShardID{0, 1, protocol.MaxShards - 1} {
				name := nameOf(cluster, kind, shard)
				require.False(t, seen[name], name)
				seen[name] = true
				keeper, err := lease.NewKeeper(memory.New(), lease.Default(), name, "10.0.0.1:7946")
				require.NoError(t, err, name)
				require.NoError(t, keeper.Close())
			}
		}
	}
	require.Equal(t, "shard-bank-account-7", nameOf("bank", "account", 7), "names are what other releases have in the store")
}
