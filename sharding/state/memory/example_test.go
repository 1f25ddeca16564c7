// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/store"
)

// A later owner claims the record, and what the one before writes comes to nothing.
func Example() {
	ctx, s := context.Background(), memory.New()
	account := store.Key{Kind: "account", ID: "acct-42"}
	before := store.Owner{Epoch: epoch.Epoch{N: 1}, Instance: 1}
	after := store.Owner{Epoch: epoch.Epoch{N: 2}, Instance: 1}

	_, _ = s.Load(ctx, []store.Claim{{Key: account, Owner: before}})
	_, _ = s.Load(ctx, []store.Claim{{Key: account, Owner: after}})
	write := store.Write{Key: account, Owner: before, Version: 1, Snapshot: store.Value{Form: 1, Bytes: []byte("late")}}
	heads, err := s.Save(ctx, []store.Write{write})
	fmt.Println(heads[0] == write.After(), heads[0].Owner == after, heads[0].Version, err)
	// Output: false true 0 <nil>
}
