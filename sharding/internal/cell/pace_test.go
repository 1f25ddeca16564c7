// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/sharding/internal/cell"
)

// An entity counts as slow from a long run on, until 16 short ones in a row have ended.
func TestAnEntityIsSlowForSomeRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, runs := new(cell.Entity), []bool(nil)
		require.False(t, e.Slow())
		for _, often := range rapid.SliceOf(rapid.IntRange(-20, 3)).Draw(t, "runs") { // Below 0: so many short ones.
			for range max(often, -often) {
				runs = append(runs, often > 0)
				slow := slices.Contains(runs[max(0, len(runs)-16):], true)
				require.Equal(t, slow, e.Pace(often > 0))
				require.Equal(t, slow, e.Slow())
			}
		}
	})
}
