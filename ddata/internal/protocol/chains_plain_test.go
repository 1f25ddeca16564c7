// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package protocol

import "slices"

// searches are the searches of a run of the tests. With the race detector there are only
// the small ones, see chains_race_test.go.
func searches() []search {
	return append(
		slices.Concat(smallSearches(), smallHeldSearches(), heldSearches()),
		search{name: "two sets of four", nodes: 4, chains: chains(4, 2), expected: 210},
		search{name: "three sets of three", nodes: 3, chains: chains(3, 3), expected: 252},
		search{name: "a change taken back", nodes: 3, chains: detours(3), expected: 252},
		search{name: "two sets of four, two copies", nodes: 4, chains: chains(4, 2), copies: 2, buckets: bucketsInChains, expected: 210},
	)
}
