// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// number draws small numbers and those around powers of 16, where lengths change.
var number = rapid.OneOf(
	rapid.Uint64Range(0, 20),
	rapid.Custom(func(t *rapid.T) uint64 {
		return uint64(1)<<(4*rapid.IntRange(0, 15).Draw(t, "digits")) + rapid.Uint64Range(0, 2).Draw(t, "more") - 1
	}),
	rapid.Uint64(),
)

var epochs = rapid.Custom(func(t *rapid.T) protocol.Epoch {
	return protocol.Epoch{
		Born: int64(number.Draw(t, "born") & math.MaxInt64),
		Term: protocol.Term{
			UpNumber: gossip.UpNumber(number.Draw(t, "up")), UID: gossip.UID(number.Draw(t, "uid")), Start: number.Draw(t, "start"),
		},
		N: number.Draw(t, "n"),
	}
})

// The text and the byte form compare like the epochs, and nothing else is parsed.
func TestEpochFormsKeepTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := epochs.Draw(t, "a"), epochs.Draw(t, "b")
		x, err := a.MarshalBinary()
		require.NoError(t, err)
		y, err := b.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, a.Compare(b), strings.Compare(a.String(), b.String()))
		require.Equal(t, a.Compare(b), bytes.Compare(x, y))
		require.Equal(t, a.Compare(b), -b.Compare(a))
		require.Equal(t, a.Less(b), a.Compare(b) < 0)
		require.Equal(t, a == b, a.Compare(b) == 0)

		text, err := protocol.ParseEpoch(a.String())
		require.NoError(t, err)
		require.Equal(t, a, text)
		var bin protocol.Epoch
		require.NoError(t, bin.UnmarshalBinary(x))
		require.Equal(t, a, bin)
	})
}

func TestEpochComparesFieldByField(t *testing.T) {
	e := func(born int64, up gossip.UpNumber, uid gossip.UID, start, n uint64) protocol.Epoch {
		return protocol.Epoch{Born: born, Term: protocol.Term{UpNumber: up, UID: uid, Start: start}, N: n}
	}
	ordered := []protocol.Epoch{
		{}, e(1, 1, 5, 1, 9), e(1, 1, 5, 2, 1), e(1, 1, 6, 1, 1), e(1, 2, 5, 1, 1), e(2, 1, 5, 1, 1),
	}
	for i, a := range ordered {
		for j, b := range ordered {
			require.Equal(t, cmp.Compare(i, j), a.Compare(b))
		}
	}
	require.True(t, ordered[0].IsZero())
}

func TestParseEpochRefuses(t *testing.T) {
	for _, text := range []string{
		"", "a1", "a1-a1-a1-a1", "a1-a1-a1-a1-a1-a1", "b1-a1-a1-a1-a1", "a-a1-a1-a1-a1", "b01-a1-a1-a1-a1", "aA-a1-a1-a1-a1",
		"a1-a1-a1-a1-a1 ", "pffffffffffffffff-a1-a1-a1-a1", "q10000000000000000-a1-a1-a1-a1",
	} {
		_, err := protocol.ParseEpoch(text)
		require.Error(t, err, text)
	}
	var e protocol.Epoch
	require.Error(t, e.UnmarshalText([]byte("no")))
	require.Error(t, e.UnmarshalBinary(make([]byte, protocol.EpochSize-1)))
	require.Error(t, e.UnmarshalBinary(bytes.Repeat([]byte{0xff}, protocol.EpochSize)))
}

func FuzzParseEpoch(f *testing.F) {
	f.Add("a1-a1-a1-a1-a1")
	f.Add("k19b76daa803-a3-p1b0f2e3d4c5b6a79-a1-b1f")
	f.Add("b01-a1-a1-a1-a1")
	f.Fuzz(func(t *testing.T, text string) {
		if e, err := protocol.ParseEpoch(text); err == nil {
			require.Equal(t, text, e.String(), "one text for one epoch")
		}
	})
}

// The shard of an id is part of the wire: these values never change.
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

func TestCodesAndErrors(t *testing.T) {
	require.NoError(t, protocol.CodeOK.Err())
	require.Equal(t, "ok", protocol.CodeOK.String())
	for code, want := range map[protocol.Code]error{
		protocol.CodeUnreachable: protocol.ErrUnreachable, protocol.CodeOverloaded: protocol.ErrOverloaded,
		protocol.CodeNotDelivered: protocol.ErrNotDelivered, protocol.CodeUnknownOutcome: protocol.ErrUnknownOutcome,
		protocol.CodeEntityFailed: protocol.ErrEntityFailed, protocol.CodeNoStanding: protocol.ErrNoStanding,
		protocol.CodeExpired: protocol.ErrExpired, 200: protocol.ErrUnknownOutcome,
	} {
		require.ErrorIs(t, code.Err(), want)
	}
}

func TestKindConfigReportsAllFaults(t *testing.T) {
	good := protocol.KindConfig{Name: "k", Settings: protocol.Settings{Shards: 1}}
	require.NoError(t, good.Validate())
	err := protocol.KindConfig{MinRegions: -1, Timings: protocol.Timings{Retry: -1}}.Validate()
	require.ErrorContains(t, err, "name")
	require.ErrorContains(t, err, "number of shards")
	require.ErrorContains(t, err, "min regions")
	require.ErrorContains(t, err, "time")
	// What is not UTF-8 could not be sent to any other node.
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
	require.Nil(t, a.Difference("k", a))
	for _, b := range []protocol.Settings{
		{Shards: 11, Hash: "h", Codec: "c", Role: "r"},
		{Shards: 10, Hash: "x", Codec: "c", Role: "r"},
		{Shards: 10, Hash: "h", Codec: "x", Role: "r"},
		{Shards: 10, Hash: "h", Codec: "c", Role: "x"},
	} {
		d := a.Difference("k", b)
		require.NotNil(t, d)
		require.ErrorContains(t, d, d.Setting)
		require.ErrorContains(t, d, d.Coordinator)
		require.ErrorContains(t, d, d.Region)
	}
}

// goldenShards are the shards of ids as they have been from the beginning.
const goldenShards = "acct-42/1=0 acct-42/10=2 acct-42/1000=332 acct-42/65536=55284 konto-ä/1=0 konto-ä/10=8 konto-ä/1000=908 konto-ä/65536=39524 xxxxxxxxxx/1=0 xxxxxxxxxx/10=2 xxxxxxxxxx/1000=52 xxxxxxxxxx/65536=49300 "
