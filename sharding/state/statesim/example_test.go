// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package statesim_test

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/sharding/state/statesim"
)

// The scenario runs twice: the same seed and the same number of nodes give the same run.
func ExampleScenarios() {
	states := statesim.Scenarios()[0]

	first, err := states.Run(1, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := states.Run(1, 3)
	fmt.Println(first.Now() > time.Minute, first.Trace().Hash() == second.Trace().Hash(), err)
	// Output: true true <nil>
}
