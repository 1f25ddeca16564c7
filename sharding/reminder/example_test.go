// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reminder_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/reminder"
	"github.com/quorate/quorate/sharding/state/memory"
	network "github.com/quorate/quorate/transport/memory"
)

// invoice is an entity that is reminded. What it does with a reminder is done when it replies.
type invoice struct{ done chan<- string }

func (i invoice) Receive(c *sharding.Context, what *wrapperspb.StringValue) error {
	i.done <- c.ID() + ": " + what.GetValue()
	return c.Reply(what)
}

// An invoice is reminded when it is due. A program has a store that outlives its processes, and starts
// its node by package cluster.
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

	reminders, err := reminder.Start(system, memory.New(), reminder.Default(), reminder.WithLogger(quiet))
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan string)
	invoices, err := sharding.Start(system, sharding.Kind[*wrapperspb.StringValue]{
		Name: "invoice",
		New:  func(*sharding.Context) sharding.Entity[*wrapperspb.StringValue] { return invoice{done} },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = reminders.Target("invoice", reminder.Ask[*wrapperspb.StringValue](invoices, func(f reminder.Fired) *wrapperspb.StringValue {
		return wrapperspb.String(f.Name)
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range []reminder.Reminder{
		{Kind: "invoice", ID: "2026-17", Name: "demand payment", Due: time.Now()},
		{Kind: "invoice", ID: "2026-17", Name: "give up", Due: time.Now().AddDate(0, 3, 0)},
	} {
		if err := reminders.Set(ctx, r); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(<-done)
	canceled, err := reminders.Cancel(ctx, "invoice", "2026-17", "give up")
	fmt.Println(canceled, err)
	// Output:
	// 2026-17: demand payment
	// true <nil>
}
