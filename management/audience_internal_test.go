// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Readers share the places of streams, and operators come first.
func TestReadersShareThePlacesOfStreams(t *testing.T) {
	const places = 4
	var a readers
	ended := ""
	come := func(who string, operator bool) (*reader, bool) {
		r := &reader{who: who, operator: operator, end: func(error) { ended += who + " " }}
		return r, a.join(r, places)
	}
	for range places {
		_, ok := come("greedy", false)
		require.True(t, ok)
	}
	_, ok := come("greedy", false)
	require.False(t, ok)
	_, ok = come("other", false)
	require.True(t, ok)
	second, ok := come("other", false)
	require.True(t, ok)
	_, ok = come("other", false)
	require.False(t, ok, "each has two")
	require.Equal(t, "greedy greedy ", ended)

	for range places {
		_, ok = come("operator", true)
		require.True(t, ok)
	}
	require.Equal(t, "greedy greedy greedy other greedy other ", ended)
	_, ok = come("operator", true)
	require.False(t, ok, "an operator displaces no operator")
	a.leave(second)
	a.leave(a.open[0])
	_, ok = come("other", false)
	require.True(t, ok)
	require.Equal(t, map[string]int{"operator": 3, "other": 1}, a.count)
}
