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

// Each code has a text of its own, and a code of a later version means that the outcome is
// unknown.
func TestCodesSayWhatHappened(t *testing.T) {
	texts := map[string]bool{}
	for code := range protocol.Codes {
		texts[protocol.Code(code).String()] = true
	}
	require.Len(t, texts, protocol.Codes)
	require.Equal(t, "ok", protocol.CodeOK.String())
	require.Equal(t, "code 200: unknown outcome", protocol.Code(200).String())
}

func TestKindConfigReportsAllFaults(t *testing.T) {
	good := protocol.KindConfig{Name: "k", Settings: protocol.Settings{Shards: 1}}
	require.NoError(t, good.Validate())
	err := protocol.KindConfig{MinRegions: -1, Timings: protocol.Timings{Retry: -1}}.Validate()
	require.ErrorContains(t, err, "name")
	require.ErrorContains(t, err, "number of shards")
	require.ErrorContains(t, err, "min regions")
	require.ErrorContains(t, err, "time")
	// A name that is not UTF-8 could not be sent to another node.
	require.ErrorContains(t, protocol.KindConfig{Name: "\xff", Settings: good.Settings}.Validate(), "UTF-8")
	for _, s := range []protocol.Settings{
		{Shards: 1, Codec: "\xff"},
		{Shards: 1, Role: strings.Repeat("r", protocol.MaxKindBytes+1)},
		{Shards: protocol.MaxShards + 1},
	} {
		require.Error(t, protocol.KindConfig{Name: "k", Settings: s}.Validate())
	}
}

func TestSettingsDifferenceNamesBothValues(t *testing.T) {
	a := protocol.Settings{Shards: 10, Hash: "h", Codec: "c", Role: "r"}
	_, differ := a.Difference("k", a)
	require.False(t, differ)
	for _, b := range []protocol.Settings{
		{Shards: 11, Hash: "h", Codec: "c", Role: "r"},
		{Shards: 10, Hash: "x", Codec: "c", Role: "r"},
		{Shards: 10, Hash: "h", Codec: "x", Role: "r"},
		{Shards: 10, Hash: "h", Codec: "c", Role: "x"},
	} {
		refusal, differ := a.Difference("k", b)
		require.True(t, differ)
		require.NotEmpty(t, refusal.Setting)
		require.NotEqual(t, refusal.Coordinator, refusal.Region)
	}
}

// goldenShards is what shardLines must return for ever.
const goldenShards = "acct-42/1=0 acct-42/10=2 acct-42/1000=332 acct-42/65536=55284 konto-ä/1=0 konto-ä/10=8 konto-ä/1000=908 konto-ä/65536=39524 xxxxxxxxxx/1=0 xxxxxxxxxx/10=2 xxxxxxxxxx/1000=52 xxxxxxxxxx/65536=49300 "
