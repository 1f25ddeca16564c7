// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remindersim_test

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/sharding/reminder/remindersim"
)

// The scenario runs twice: the same seed and the same number of nodes give the same run.
func ExampleScenarios() {
	reminders := remindersim.Scenarios()[0]

	first, err := reminders.Run(1, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := reminders.Run(1, 3)
	fmt.Println(first.Now() > time.Minute, first.Trace().Hash() == second.Trace().Hash(), err)
	// Output: true true <nil>
}
