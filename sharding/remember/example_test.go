// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remember_test

import (
	"fmt"

	"github.com/quorate/quorate/sharding/remember"
)

// A set is that of one shard of one kind, with so many shards.
func ExampleShard_String() {
	fmt.Println(remember.Shard{Kind: "meter", Number: 17, Of: 1000})
	// Output: shard 17 of 1000 of meter
}
