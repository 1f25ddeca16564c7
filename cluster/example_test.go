// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/ddata/services/registry"
	"github.com/quorate/quorate/sharding"
)

// A cluster of one node, and an entity on it. Further nodes name the first one
// among their seed nodes.
func ExampleStart() {
	node, err := alone()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = node.Close() }()
	counters, err := sharding.Start(node, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "counter", New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return new(counter) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	sum, err := sharding.Ask[*wrapperspb.Int64Value](context.Background(), counters, "visits", wrapperspb.Int64(2))
	fmt.Println(sum.GetValue(), err)
	// Output: 2 <nil>
}

// alone starts the only node of a cluster.
func alone() (*cluster.Node, error) {
	probe, err := net.Listen("tcp", "127.0.0.1:0") // The example takes any free port; a real node has a fixed one.
	if err != nil {
		return nil, err
	}
	_ = probe.Close()
	cfg := cluster.Default()
	cfg.Cluster.Name, cfg.Node.Address = "example", probe.Addr().String()
	cfg.Membership.SeedNodes = []string{cfg.Node.Address}
	node, err := cluster.Start(context.Background(), cluster.WithConfig(cfg), cluster.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	return node, node.AwaitUp(context.Background())
}

// A node registers its mail service and finds it, as every other node does.
func ExampleNode_Registry() {
	ctx := context.Background()
	node, err := alone()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = node.Close() }()
	services, err := node.Registry()
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := services.Register(ctx, registry.Entry{Name: "mail", Address: "10.0.0.1:25"}); err != nil {
		fmt.Println(err)
		return
	}
	found, err := services.Find(ctx, "mail")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range found {
		fmt.Println(e.Name, e.Address)
	}
	// Output: mail 10.0.0.1:25
}

// A node subscribes to a topic and publishes to it: the other nodes may do either.
func ExampleNode_Topics() {
	ctx := context.Background()
	node, err := alone()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = node.Close() }()
	topics, err := node.Topics()
	if err != nil {
		fmt.Println(err)
		return
	}
	news, err := pubsub.NewTopic(topics, "news", pubsub.JSON[string]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	sub, err := news.Subscribe(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := news.Publish(ctx, "hello"); err != nil {
		fmt.Println(err)
		return
	}
	m, err := sub.Next(ctx)
	fmt.Println(m.Value, err)
	// Output: hello <nil>
}
