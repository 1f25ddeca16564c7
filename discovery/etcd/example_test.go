// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/etcd"
)

// A node registers itself and looks for the others. Here there is no etcd, and both the
// registration and the lookup say so.
func ExampleNew() {
	config := etcd.Default()
	config.Endpoints, config.RequestTimeout = []string{"http://127.0.0.1:1"}, 200*time.Millisecond
	nodes, err := etcd.New(config)
	if err != nil {
		panic(err)
	}
	defer func() { _ = nodes.Close() }()
	registered, err := nodes.Register(etcd.Entry{
		Service: "bank", Host: "10.1.0.7", Port: 7946, Ports: map[string]uint16{"management": 8558},
	})
	if err != nil {
		panic(err)
	}
	//quorate:realtime It is meant to end.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := registered.Wait(ctx); err != nil {
		fmt.Println("not registered")
	}
	_, err = nodes.Lookup(ctx, discovery.Query{Service: "bank", Port: "management"})
	fmt.Println(err != nil)
	// Output:
	// not registered
	// true
}
