// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// All nodes, of all versions, must compute the same shard for an id: these values never
// change.
func TestShardOfGolden(t *testing.T) {
	// The published xxhash64 values of these texts, with seed 0.
	for id, hash := range map[string]uint64{
		"": 0xef46db3751d8e999, "a": 0xd24ec4f1a98c6e5b, "abc": 0x44bc2cf5ad770999,
	} {
		for _, n := range []uint32{1, 10, 1000, protocol.MaxShards} {
			require.Equal(t, protocol.ShardID(hash%uint64(n)), protocol.ShardOf(id, n), "%q of %d", id, n)
		}
	}
	require.Equal(t, goldenShards, shardLines())
}

func shardLines() string {
	var b strings.Builder
	for _, id := range []string{"acct-42", "konto-ä", strings.Repeat("x", 100)} {
		for _, n := range []uint32{1, 10, 1000, protocol.MaxShards} {
			fmt.Fprintf(&b, "%.10s/%d=%d ", id, n, protocol.ShardOf(id, n))
		}
	}
	return b.String()
}

// goldenShards is what shardLines must return for ever.
const goldenShards = "acct-42/1=0 acct-42/10=2 acct-42/1000=332 acct-42/65536=55284 konto-ä/1=0 konto-ä/10=8 konto-ä/1000=908 konto-ä/65536=39524 xxxxxxxxxx/1=0 xxxxxxxxxx/10=2 xxxxxxxxxx/1000=52 xxxxxxxxxx/65536=49300 "
