// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package locationssim_test

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/cluster/locations/locationssim"
)

// The scenario runs twice: the same seed and the same number of nodes give the same run.
func ExampleScenarios() {
	locations := locationssim.Scenarios()[0]

	first, err := locations.Run(1, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := locations.Run(1, 3)
	fmt.Println(first.Now() > time.Minute, first.Trace().Hash() == second.Trace().Hash(), err)
	// Output: true true <nil>
}
