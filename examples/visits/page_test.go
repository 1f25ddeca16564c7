// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A number survives a move, and bytes that are no number are refused.
func TestAPageTakesItsNumberAlong(t *testing.T) {
	for _, visits := range []int64{0, 1, 300, 1 << 62} {
		old, moved := page{visits: visits}, page{}
		snapshot, err := old.Snapshot(nil)
		require.NoError(t, err)
		require.NoError(t, moved.Restore(nil, snapshot))
		require.Equal(t, old, moved)
		require.Error(t, moved.Restore(nil, append(snapshot, 0)))
	}
	for _, broken := range [][]byte{nil, {0x80}} {
		require.Error(t, new(page).Restore(nil, broken))
	}
}
