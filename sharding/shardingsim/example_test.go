// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package shardingsim_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/sharding/shardingsim"
	"github.com/quorate/quorate/simulation"
)

// The scenario in which nodes leave while shards move runs twice: the same seed and the same
// number of nodes give the same run.
func ExampleScenarios() {
	all := shardingsim.Scenarios()
	moves := all[slices.IndexFunc(all, func(s simulation.Scenario) bool { return s.Name == "sharding-moves" })]

	first, err := moves.Run(1, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := moves.Run(1, 3)
	fmt.Println(first.Now() > time.Minute, first.Trace().Hash() == second.Trace().Hash(), err)
	// Output: true true <nil>
}

// A strategy is tried out while nodes come and go.
func ExampleStrategy() {
	strategy, err := allocation.New(allocation.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = shardingsim.Strategy(1, 5, strategy)
	fmt.Println(err)
	// Output: <nil>
}
