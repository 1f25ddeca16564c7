// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocationtest_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
)

// Your own strategy passes the suite in a test: this is the body of func
// TestContract(t *testing.T).
func ExampleTestStrategy() {
	t := new(testing.T) // The parameter of the test.
	allocationtest.TestStrategy(t, func(tb testing.TB) allocation.Strategy {
		tb.Helper()
		strategy, err := allocation.NewLeastShard(allocation.Default().LeastShard)
		if err != nil {
			tb.Fatal(err)
		}
		return strategy
	})
}

// The regions after a move has been carried out.
func ExampleApply() {
	regions := []allocation.RegionState{
		{ID: "a", Shards: []allocation.Shard{1, 2, 3}},
		{ID: "b"},
	}
	for _, r := range allocationtest.Apply(regions, []allocation.Move{{Shard: 2, From: "a", To: "b"}}) {
		fmt.Println(r.ID, r.Shards)
	}
	// Output:
	// a [1 3]
	// b [2]
}
