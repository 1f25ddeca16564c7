// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/services/registry"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/memory"
)

// A node registers its mail service and finds it. Real nodes leave the transport away and
// live on machines of their own.
func Example() {
	ctx, quiet := context.Background(), slog.New(slog.DiscardHandler)
	cfg := membership.Default()
	cfg.Cluster.Name, cfg.Node.Address, cfg.Membership.SeedNodes = "bank", "127.0.0.1:7946", []string{"127.0.0.1:7946"}
	network := memory.NewNetwork()
	node, err := membership.Start(ctx, cfg, membership.WithLogger(quiet),
		membership.WithTransport(network.Transport))
	if err != nil {
		fmt.Println(err)
		return
	}
	data, err := ddata.New(node, ddata.Default(), ddata.WithLogger(quiet))
	if err != nil {
		fmt.Println(err)
		return
	}
	services, err := registry.New(data, registry.WithLogger(quiet))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		_ = node.Close()           // It never fails.
		_ = services.AwaitEnd(ctx) // The context never ends.
		_ = data.AwaitEnd(ctx)     // Nor here.
	}()

	sub := services.Subscribe("mail")
	defer sub.Close()
	mail, err := services.Register(ctx, registry.Entry{Name: "mail", Address: "10.0.0.1:25", Metadata: map[string]string{"tls": "yes"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := node.AwaitUp(ctx); err != nil { // Entries of members are found.
		fmt.Println(err)
		return
	}
	found, err := services.Find(ctx, "mail")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range found {
		fmt.Println("found", e.Address, e.Metadata)
	}
	for range 2 {
		event, err := sub.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Entry.Address, event.Kind)
		if err := mail.Close(ctx); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// found 10.0.0.1:25 map[tls:yes]
	// 10.0.0.1:25 appeared
	// 10.0.0.1:25 vanished
}
