// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"context"
	"fmt"
	"log/slog"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/memory"
	network "github.com/quorate/quorate/transport/memory"
)

// account is a state; deposit changes it.
type account struct{ Cents int64 }

func deposit(c *state.Context[account], cents *wrapperspb.Int64Value) error {
	c.State().Cents += cents.GetValue()
	return c.Reply(wrapperspb.Int64(c.State().Cents)) // The reply leaves when the state is saved.
}

// An account keeps its cents when its entity is stopped. A program has a store that outlives its
// processes, and starts its node by package cluster.
func Example() {
	ctx, quiet := context.Background(), slog.New(slog.DiscardHandler)
	cfg := membership.Default()
	cfg.Cluster.Name, cfg.Node.Address = "example", "127.0.0.1:7946"
	cfg.Membership.SeedNodes = []string{"127.0.0.1:7946"}
	node, err := membership.Start(ctx, cfg, membership.WithLogger(quiet), membership.WithTransport(network.NewNetwork().Transport))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = node.Close() }()
	system, err := sharding.New(node, sharding.Default(), sharding.WithLogger(quiet))
	if err != nil {
		fmt.Println(err)
		return
	}

	keeper, err := state.NewKeeper(memory.New(), state.Default(), state.WithLogger(quiet))
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err := sharding.Start(system, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "account",
		New:  state.Snapshots(keeper, state.JSON[account](), deposit),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, cents := range []int64{100, 20, 0} {
		balance, err := sharding.Ask[*wrapperspb.Int64Value](ctx, accounts, "acct-42", wrapperspb.Int64(cents))
		fmt.Println(balance.GetValue(), err)
	}
	fmt.Println("saved", keeper.Stats().Saves, "times")
	if err := node.Leave(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println(system.AwaitEnd(ctx))
	// Output:
	// 100 <nil>
	// 120 <nil>
	// 120 <nil>
	// saved 2 times
	// <nil>
}

// entries is a state that is made of events.
type entries struct{ Cents, Count int64 }

// A ledger saves each booking; its state is what the bookings add up to.
func ExampleEvents() {
	booked := func(e *entries, cents *int64) { e.Cents, e.Count = e.Cents+*cents, e.Count+1 }
	keeper, err := state.NewKeeper(memory.New(), state.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	kind := sharding.Kind[*wrapperspb.Int64Value]{
		Name: "ledger",
		New: state.Events(keeper, state.JSON[entries](), state.JSON[int64](), booked,
			func(c *state.Context[entries], emit func(*int64), booking *wrapperspb.Int64Value) error {
				emit(&booking.Value)
				return c.Reply(wrapperspb.Int64(c.State().Cents))
			}),
	}
	fmt.Println(kind.Name) // Given to sharding.Start.
	// Output: ledger
}

// Form 1 of the account had whole units of money; form 2 has cents.
func ExampleUpgraded() {
	codec := state.Upgraded(state.JSON[account](), func(old []byte) ([]byte, error) {
		var units int64
		_, err := fmt.Sscanf(string(old), `{"Units":%d}`, &units)
		return fmt.Appendf(nil, `{"Cents":%d}`, 100*units), err
	})
	var a account
	fmt.Println(codec.Decode(1, []byte(`{"Units":7}`), &a), a.Cents, codec.Form())
	// Output: <nil> 700 2
}
