// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDistanceCountsSlipsOfTheHand(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"addrss", "address", 1}, {"ab", "ba", 1}, {"fence", "hence", 1}, {"", "abc", 3}} {
		require.Equal(t, c.want, distance(c.a, c.b), "%s %s", c.a, c.b)
	}
}

func TestDistanceIsSymmetricAndZeroOnlyForEquals(t *testing.T) {
	word := rapid.StringMatching(`[a-d-]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		require.Equal(t, distance(a, b), distance(b, a))
		require.Equal(t, a == b, distance(a, b) == 0)
		require.LessOrEqual(t, distance(a, b), max(len(a), len(b)))
	})
}
