// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
)

// Each region has its share, and the shards that are left over go to different ones.
func TestEven(t *testing.T) {
	require.Error(t, even([]allocation.RegionState{{ID: "a"}, {ID: "b", Shards: []allocation.Shard{1, 2}}}, 2))
	require.NoError(t, even([]allocation.RegionState{{ID: "a", Shards: []allocation.Shard{0}}, {ID: "b", Shards: []allocation.Shard{1, 2}}}, 3))
}
