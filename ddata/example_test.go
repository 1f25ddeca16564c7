// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/memory"
)

// lone starts a cluster of one node. The transport in memory stands for the network, which is
// the default.
func lone(ctx context.Context) (*membership.Node, *ddata.Replicator, error) {
	quiet, network := slog.New(slog.DiscardHandler), memory.NewNetwork()
	cfg, data := membership.Default(), ddata.Default()
	cfg.Cluster.Name, cfg.Node.Address = "example", "127.0.0.1:7946"
	cfg.Membership.SeedNodes = []string{"127.0.0.1:7946"}
	node, err := membership.Start(ctx, cfg, membership.WithLogger(quiet), membership.WithSettings(data.Settings()...),
		membership.WithTransport(network.Transport))
	if err != nil {
		return nil, nil, err
	}
	r, err := ddata.New(node, data, ddata.WithLogger(quiet))
	if err != nil {
		return nil, nil, errors.Join(err, node.Close())
	}
	return node, r, r.AwaitReady(ctx)
}

// A set that every node may change, and what a subscriber hears of it.
func Example() {
	ctx := context.Background()
	node, r, err := lone(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = node.Close() }()

	online := ddata.NewKey[crdt.ORSet[string]]("online")
	join := func(name string) func(crdt.Origin, crdt.ORSet[string]) (crdt.ORSet[string], error) {
		return func(at crdt.Origin, who crdt.ORSet[string]) (crdt.ORSet[string], error) {
			return who.Add(at, name), nil
		}
	}
	for _, name := range []string{"ada", "bob"} {
		if _, err := ddata.Update(ctx, r, online, ddata.Majority(), join(name)); err != nil {
			fmt.Println(err)
			return
		}
	}
	who, err := ddata.Get(ctx, r, online, ddata.Majority())
	fmt.Println(who.Len(), who.Has("ada"), err)

	changes := ddata.Subscribe(r, online)
	defer changes.Close()
	event, err := changes.Next(ctx)
	fmt.Println(event.Kind, event.Key, event.Value.Len(), err)

	fmt.Println(ddata.Delete(ctx, r, online, ddata.Majority()))
	_, err = ddata.Get(ctx, r, online, ddata.Local())
	fmt.Println(errors.Is(err, ddata.ErrDeleted))
	// Output:
	// 2 true <nil>
	// changed online 2 <nil>
	// <nil>
	// true
}

// An error says what has become of the data.
func ExampleUpdate_errors() {
	ctx := context.Background()
	node, r, err := lone(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = node.Close() }()

	stock := ddata.NewKey[crdt.PNCounter]("stock")
	take := func(at crdt.Origin, left crdt.PNCounter) (crdt.PNCounter, error) {
		if left.Value() < 1 {
			return left, errors.New("sold out")
		}
		return left.Add(at, -1), nil
	}
	_, err = ddata.Update(ctx, r, stock, ddata.Majority(), take)
	fmt.Println(err)
	_, err = ddata.Get(ctx, r, stock, ddata.Majority())
	fmt.Println(err)
	_, err = ddata.Get(ctx, r, stock, ddata.From(0))
	fmt.Println(err)
	// Output:
	// ddata: key "stock": nothing has changed: the update function failed: sold out
	// ddata: key "stock": there is no value
	// ddata: key "stock": invalid consistency: 0 replicas, at least one is needed
}
