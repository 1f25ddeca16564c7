// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figures_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/figures"
)

// The figures on the page about downing are what the commands print that stand beside them, as
// far as that is known in seconds; `make figures` renews all of them.
func TestThePageSaysWhatTheCommandsPrint(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	page, quick, err := figures.Render(t.Context(), root, true)
	require.NoError(t, err)
	require.Empty(t, strings.Join(figures.Differences(page, quick), "\n"), "%s is stale: run make figures", figures.Page)

	for _, planted := range [][2]string{ // A block, and tables of each sort.
		{"  split-2           15      0       15", "  split-2           15      1       14"},
		{"| keep-oldest, with down-if-alone | 0 of 57 |", "| keep-oldest, with down-if-alone | 1 of 57 |"},
		{"| a node joins | 0 of 30 | 0 |", "| a node joins | 0 of 30 | 1 |"},
		{"| 3 | a node joins | 2 of 6 |", "| 3 | a node joins | 1 of 6 |"},
		{"| 4 | 3 of 14 | 6 of 28 |", "| 4 | 3 of 14 | 5 of 28 |"},
		{"| `manual` | 0 of 15 |", "| `manual` | 1 of 15 |"},
	} {
		require.Contains(t, page, planted[0])
		require.Len(t, figures.Differences(strings.Replace(page, planted[0], planted[1], 1), quick), 2, "not found: %s", planted[1])
	}
}

func TestDifferencesPassUnknownFigures(t *testing.T) {
	require.Empty(t, figures.Differences("a  1 of 2\nb", "a ? of ?\nb"))
	require.Equal(t, []string{"the page:    b", "a fresh run: c"}, figures.Differences("a 1\nb", "a ?\nc"))
	require.Len(t, figures.Differences("a", "a\nb"), 2)
}
