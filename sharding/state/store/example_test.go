// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"

	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state/store"
)

// Owners are ordered by the epoch first: an instance of a later home is above all of an earlier one.
func ExampleOwner_Less() {
	early := store.Owner{Epoch: epoch.Epoch{N: 1}, Instance: 9}
	late := store.Owner{Epoch: epoch.Epoch{N: 2}, Instance: 1}
	fmt.Println(early.Less(late), late.Less(early), late)
	// Output: true false a0-a0-a0-a0-a2/1
}
