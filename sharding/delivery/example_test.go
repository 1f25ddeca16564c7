// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"fmt"
	"log/slog"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/delivery"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/memory"
	network "github.com/quorate/quorate/transport/memory"
)

// account is a state with an inbox: each deposit changes it once.
type account struct {
	Cents int64
	Inbox delivery.Inbox
}

// Deposits are delivered to an account, which saves them together with what it has seen. A program leaves
// WithTransport out and uses the network, or package cluster, which starts node and sharding from a file.
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
	keeper, err := state.NewKeeper(memory.New(), state.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err := sharding.Start(system, sharding.Kind[*delivery.Frame[*wrapperspb.Int64Value]]{
		Name: "account", Codec: delivery.Codec[*wrapperspb.Int64Value](nil),
		New: state.Snapshots(keeper, state.JSON[account](),
			func(c *state.Context[account], f *delivery.Frame[*wrapperspb.Int64Value]) error {
				return f.Handle(c, &c.State().Inbox, func(cents *wrapperspb.Int64Value) error {
					if cents.GetValue() == 0 { // An ask.
						return c.Reply(wrapperspb.Int64(c.State().Cents))
					}
					c.State().Cents += cents.GetValue()
					return nil
				})
			}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	producer, err := delivery.NewProducer(ctx, accounts, delivery.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer producer.Close()
	for range 5 {
		if err := producer.Send(ctx, "acct-42", wrapperspb.Int64(100)); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(producer.Deliver(ctx, "acct-42", wrapperspb.Int64(50)))
	cents, err := sharding.Ask[*wrapperspb.Int64Value](ctx, accounts, "acct-42", delivery.Plain(wrapperspb.Int64(0)))
	fmt.Println(cents.GetValue(), err)
	// Output:
	// <nil>
	// 550 <nil>
}
