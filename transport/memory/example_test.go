// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/memory"
)

// Two nodes on a network in memory; one greets the other.
func Example() {
	network := memory.NewNetwork()
	node := func(port uint16, uid gossip.UID) *memory.Transport {
		t, err := memory.New(network, transport.Identity{
			Node:     gossip.NodeID{Address: gossip.Address{Host: "127.0.0.1", Port: port}, UID: uid},
			Cluster:  "bank",
			Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
		}, transport.Default())
		if err != nil {
			panic(err)
		}
		return t
	}
	alice, bob := node(7946, 1), node(7947, 2)
	defer func() { _, _ = alice.Close(), bob.Close() }()

	const greetings transport.Service = 9
	done := make(chan struct{})
	bob.Handle(greetings, func(from gossip.NodeID, frame []byte) {
		fmt.Printf("%s says %s\n", from.Address, frame)
		close(done)
	})
	for _, t := range []transport.Transport{alice, bob} {
		if err := t.Start(context.Background()); err != nil {
			panic(err)
		}
	}
	lane := alice.Lane(bob.Self(), machine.LaneControl)
	if err := lane.Append(greetings, func(b []byte) []byte { return append(b, "hello"...) }); err != nil {
		panic(err)
	}
	<-done
	// Output: 127.0.0.1:7946 says hello
}
