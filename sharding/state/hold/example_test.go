// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package hold_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state/hold"
	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/store"
)

// An instance claims its record and saves a state. Then a later owner claims the record, and the hold ends with the
// next answer.
func ExampleHold() {
	records, ctx := memory.New(), context.Background()
	account := store.Key{Kind: "account", ID: "acct-42"}
	cfg := hold.Config{Limit: 10 * time.Second, Pause: 50 * time.Millisecond, PauseMost: time.Second}
	save := func(h *hold.Hold) error {
		heads, err := records.Save(ctx, []store.Write{h.Save(1, store.Value{Form: 1, Bytes: []byte("100")}, nil)})
		if err != nil {
			return h.Unanswered(0).Err // Nil: to be repeated.
		}
		return h.Answered(heads[0]).Err
	}

	h := hold.NewHold(cfg, account, store.Owner{Epoch: epoch.Epoch{N: 1}, Instance: 1})
	claimed, _ := records.Load(ctx, []store.Claim{h.Claim()})
	fmt.Println(h.Answered(claimed[0].Head).Err, save(h), h.Version())

	later := store.Owner{Epoch: epoch.Epoch{N: 2}, Instance: 1}
	_, _ = records.Load(ctx, []store.Claim{{Key: account, Owner: later}})
	fmt.Println(save(h))
	// Output:
	// <nil> <nil> 1
	// a later owner has the record
}
