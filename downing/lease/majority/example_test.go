// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package majority_test

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/downing/lease/majority"
	"github.com/quorate/quorate/downing/lease/memory"
)

// The node n0 has lost n2, and its side has the majority.
func ExampleNew() {
	settings := majority.Default()
	settings.Store, settings.Lease, settings.Owner = "memory", "bank-downing", "n0:7946"
	strategy, err := majority.New(memory.New(), settings)
	if err != nil {
		fmt.Println(err)
		return
	}
	decision, err := strategy.Decide(context.Background(), viewOf(0, 3, 2))
	fmt.Println(decision.Verdict, len(decision.Down), err)
	fmt.Println(strategy.State())
	fmt.Println(strategy.Close())
	// Output:
	// keep-side 1 <nil>
	// holding the lease "bank-downing" at memory with the token 1
	// <nil>
}
