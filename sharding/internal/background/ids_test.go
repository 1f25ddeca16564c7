// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package background_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/background"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Each instance is alone in the shard of its number, and its id begins with the number. The ids are
// those of all nodes, so that they must not change.
func TestIDs(t *testing.T) {
	for _, n := range []int{1, 2, 7, 100, 1000} {
		for i, id := range background.IDs(n) {
			require.EqualValues(t, i, protocol.ShardOf(id, uint32(n)))
			number, _, _ := strings.Cut(id, "/")
			require.Equal(t, strconv.Itoa(i), number)
		}
	}
	require.Equal(t, []string{"0", "1/1", "2/2", "3/9"}, background.IDs(4))
}
