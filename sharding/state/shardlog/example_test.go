// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package shardlog_test

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/remember"
	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/shardlog"
)

// Sharding calls the store: whoever hosts a shard opens its set under the epoch of the home, and the one before
// cannot change it any more.
func Example() {
	ctx, meters := context.Background(), remember.Shard{Kind: "meter", Number: 17, Of: 1000}
	store, err := shardlog.New(memory.New(), shardlog.Default())
	if err != nil {
		panic(err)
	}
	former, _, _ := store.Open(ctx, meters, epoch.Epoch{Born: 1, N: 1})
	fmt.Println(former.Change(ctx, []string{"hall"}, nil))
	_, ids, _ := store.Open(ctx, meters, epoch.Epoch{Born: 1, N: 2})
	fmt.Println(ids)
	fmt.Println(former.Change(ctx, nil, []string{"hall"}) != nil)
	// Output:
	// <nil>
	// [hall]
	// true
}
