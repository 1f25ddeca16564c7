// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package deliverysim_test

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/sharding/delivery/deliverysim"
)

// The scenario runs twice: the same seed and the same number of nodes give the same run.
func ExampleScenarios() {
	deliveries := deliverysim.Scenarios()[0]

	first, err := deliveries.Run(1, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := deliveries.Run(1, 3)
	fmt.Println(first.Now() > time.Minute, first.Trace().Hash() == second.Trace().Hash(), err)
	// Output: true true <nil>
}
