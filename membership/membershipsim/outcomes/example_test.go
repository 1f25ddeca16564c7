// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package outcomes_test

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/membership/membershipsim/outcomes"
)

// Each case runs in one goroutine, and this has several of them run at once: it is what the race detector looks at, in
// place of the tests of the other files, which run thousands.
func ExampleRun() {
	strategy, err := outcomes.BuiltIn(outcomes.DefaultConfig())
	if err != nil {
		panic(err)
	}
	table, err := outcomes.Run(context.Background(), outcomes.Options{
		Nodes: 3, Strategy: strategy, Families: []string{"split-2", "split-3"},
	})
	if err != nil {
		panic(err)
	}
	for _, o := range table.Outcomes {
		fmt.Printf("%s: %v go on\n", o.Text, o.Hosts)
	}
	// Output:
	// 0+1 | 2: [0 1] go on
	// 0+2 | 1: [0 2] go on
	// 0 | 1+2: [1 2] go on
	// 0 | 1 | 2: [] go on
}
