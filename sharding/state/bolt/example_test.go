// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/bolt"
	"github.com/quorate/quorate/sharding/state/store"
)

// A record outlives the process. A program gives the keeper to state.Snapshots; here a handle saves.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "states")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for n := range uint64(2) {
		states, err := bolt.Open(filepath.Join(dir, "states"), bolt.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		keeper, err := state.NewKeeper(states, state.Default())
		if err != nil {
			fmt.Println(err)
			return
		}
		account := store.Key{Kind: "account", ID: "acct-42"}
		handle, record, err := keeper.Open(ctx, account, sharding.Epoch{Born: 1, N: n + 1})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("version %d: %q\n", record.Version, record.Snapshot.Bytes)
		fmt.Println(handle.SaveSnapshot(ctx, store.Value{Form: 1, Bytes: []byte("100 cents")}, 1), states.Close())
	}
	// Output:
	// version 0: ""
	// <nil> <nil>
	// version 1: "100 cents"
	// <nil> <nil>
}
