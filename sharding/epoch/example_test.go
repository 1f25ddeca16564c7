// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package epoch_test

import (
	"fmt"

	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/epoch"
)

// A storage keeps the highest epoch of an entity in a column of text, and refuses a write
// with a lower epoch: that of a former owner.
func Example() {
	first := epoch.Epoch{Born: 1764000000000, Term: singleton.Term{UpNumber: 1, UID: 0xb0f2, Start: 1}, N: 12}
	second := first
	second.N = 13

	column := ""
	for _, owner := range []epoch.Epoch{first, second, first} {
		text := owner.String()
		fmt.Println(text, text >= column)
		column = max(column, text)
	}

	highest, err := epoch.Parse(column)
	fmt.Println(highest == second, err)
	// Output:
	// k19ab697e800-a1-db0f2-a1-ac true
	// k19ab697e800-a1-db0f2-a1-ad true
	// k19ab697e800-a1-db0f2-a1-ac false
	// true <nil>
}
