// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
)

func TestCompareVersions(t *testing.T) {
	t.Parallel()
	ascending := []string{
		"", "-1.0", "1.2.3.4", "99999999999999999999.0", "V1.0", "build-10", "build-9", "latest", "vv1",
		"0.0.0", "0.0.1", "1-RC1", "1.0.0+4-abc", "1.0.0+10-def", "v1.0.1-M1", "1.0.1-RC1", "1.0.1-rc9", "v1.0.1-rc10", "1.0.1-rc.9", "1.0.1-rc.10",
		"1.0.1", "1.2", "1.2+3-abc", "1.2.4", "v1.9.0", "1.10.0", "v1.11.0", "2", "10.0.0", "20261122153000",
	}
	for i, a := range ascending {
		for j, b := range ascending {
			require.Equal(t, cmp.Compare(i, j), gossip.CompareVersions(a, b), "%q against %q", a, b)
		}
	}
	for _, same := range [][2]string{{"1", "v1.0.0"}, {"1.2", "1.2.0"}, {"1.0.0+3-a", "1.0.0-3-a"}, {"1.0-rc01", "1.0.0-rc1"}} {
		require.Zero(t, gossip.CompareVersions(same[0], same[1]), "%v", same)
	}
}

// A version that would be ordered as text, so that a rolling update went backwards, is
// refused.
func TestCheckVersion(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"", "0.0.0", "7", "1.9", "v1.10.0", "1.10.0-rc2", "1.0.0+3-1a2b3c4", "1.0.0-3-g1a2b3c4-dirty", "v2-SNAPSHOT"} {
		require.NoError(t, gossip.CheckVersion(good), good)
	}
	for _, bad := range []string{"latest", "1a2b3c4", "build-9", "1.2.3.4", "v", "V1", "vv1", "1.", ".1", "1..2", "-1", "+1.0", "1.x", " 1.0", "99999999999999999999", "release-1.0"} {
		require.ErrorContains(t, gossip.CheckVersion(bad), "numbers joined by dots", bad)
	}
}

func TestVersionsAreOrderedTotally(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.StringMatching(`v?[0-2](\.[0-2]{1,2}){0,3}([-+]([0-2]{1,2}|rc[0-2]{0,2}|a\.[01])){0,2}`), rapid.StringMatching(`[v0-2.+-]{0,4}`))
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := text.Draw(t, "a"), text.Draw(t, "b"), text.Draw(t, "c")
		require.Equal(t, gossip.CompareVersions(a, b), -gossip.CompareVersions(b, a), "antisymmetric")
		if gossip.CompareVersions(a, b) <= 0 && gossip.CompareVersions(b, c) <= 0 {
			require.LessOrEqual(t, gossip.CompareVersions(a, c), 0, "transitive")
		}
	})
}
