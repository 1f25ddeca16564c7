// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

func TestKindConfigReportsAllFaults(t *testing.T) {
	good := control.KindConfig{Name: "k", Settings: control.Settings{Shards: 1}}
	require.NoError(t, good.Validate())
	err := control.KindConfig{MinRegions: -1, Timings: control.Timings{Retry: -1}}.Validate()
	require.ErrorContains(t, err, "name")
	require.ErrorContains(t, err, "number of shards")
	require.ErrorContains(t, err, "min regions")
	require.ErrorContains(t, err, "time")
	// A name that is not UTF-8 could not be sent to another node.
	require.ErrorContains(t, control.KindConfig{Name: "\xff", Settings: good.Settings}.Validate(), "UTF-8")
	for _, s := range []control.Settings{
		{Shards: 1, Codec: "\xff"},
		{Shards: 1, Role: strings.Repeat("r", protocol.MaxKindBytes+1)},
		{Shards: protocol.MaxShards + 1},
	} {
		require.Error(t, control.KindConfig{Name: "k", Settings: s}.Validate())
	}
}

func TestSettingsDifferenceNamesBothValues(t *testing.T) {
	a := control.Settings{Shards: 10, Hash: "h", Codec: "c", Role: "r"}
	_, differ := a.Difference("k", a)
	require.False(t, differ)
	for _, b := range []control.Settings{
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
