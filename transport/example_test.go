// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/memory"
)

// Nodes of different clusters do not talk to each other, and say why.
func ExampleRefusedError() {
	network := memory.NewNetwork()
	node := func(cluster string, port uint16) transport.Transport {
		t, err := memory.New(network, transport.Identity{
			Node:    gossip.NodeID{Address: gossip.Address{Host: "127.0.0.1", Port: port}, UID: 1},
			Cluster: cluster, Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
		}, transport.Default())
		if err != nil {
			panic(err)
		}
		if err := t.Start(context.Background()); err != nil {
			panic(err)
		}
		return t
	}
	bank, shop := node("bank", 7946), node("shop", 7947)
	defer func() { _, _ = bank.Close(), shop.Close() }()
	_, err := bank.Probe(context.Background(), shop.Self().Address)
	var refused *transport.RefusedError
	fmt.Println(errors.As(err, &refused) && refused.Reason == transport.ReasonClusterName)
	// Output: true
}
