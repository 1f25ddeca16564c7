// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/etcd"
)

// A program gives the keeper to state.Snapshots or state.Events.
func Example() {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}, Logger: zap.NewNop()}) // It connects when it is first used.
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()
	states, err := etcd.New(client, etcd.Options{Prefix: "/bank/states/"})
	if err != nil {
		fmt.Println(err)
		return
	}
	keeper, err := state.NewKeeper(states, state.Default())
	fmt.Println(keeper.Stats().Saves, err)
	// Output: 0 <nil>
}
