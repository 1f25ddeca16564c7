// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package outcomes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership/membershipsim/outcomes"
)

// With a lease one side of every split goes on, be it a minority, and never two, whatever
// becomes of the store and of the holder.
//
// covers F9, F14, F20, F21, I1, I2, I15.
func TestALeaseKeepsOneSide(t *testing.T) {
	strategy, err := outcomes.ByLease(outcomes.DefaultConfig())
	require.NoError(t, err)
	require.False(t, strategy.Class.MajorityOnly)
	table := ran(t, outcomes.Options{Nodes: 3, Strategy: strategy})
	for _, r := range table.Rows {
		t.Logf("%+v", r)
	}
	for _, family := range []string{"split-2", "split-3", "one-way", "links", "crash"} {
		r := row(t, table, family)
		require.Equal(t, r.Cases, r.Whole+r.Majority+r.Smaller, "somebody goes on: %s", family)
	}
	for _, family := range []string{"split-2", "one-way"} { // The minority waits for the majority.
		require.Equal(t, row(t, table, family).Cases, row(t, table, family).Majority, family)
	}
	for _, family := range []string{"store-down", "store-slow", "answers-lost", "store-cut", "holder-frozen", "holder-cut", "side-frozen", "split-again"} {
		require.Positive(t, row(t, table, family).Majority, family)
	}
}
