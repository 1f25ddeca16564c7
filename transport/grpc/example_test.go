// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/grpc"
)

// Two nodes on this machine; one greets the other over a connection of its own.
func ExampleNew() {
	node := func() *grpc.Transport {
		l, err := net.Listen("tcp", "127.0.0.1:0") // The example takes any free port; a real node has a fixed one.
		if err != nil {
			panic(err)
		}
		at := netip.MustParseAddrPort(l.Addr().String())
		t, err := grpc.New(transport.Identity{
			Node:    gossip.NodeID{Address: gossip.Address{Host: at.Addr().String(), Port: at.Port()}, UID: 1},
			Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
		}, transport.Default(), grpc.WithListener(l))
		if err != nil {
			panic(err)
		}
		if err := t.Start(context.Background()); err != nil {
			panic(err)
		}
		return t
	}
	alice, bob := node(), node()
	defer func() { _, _ = alice.Close(), bob.Close() }()
	const greetings transport.Service = 9
	heard := make(chan string, 1)
	bob.Handle(greetings, func(_ gossip.NodeID, frame []byte) { heard <- string(frame) })
	if err := alice.Lane(bob.Self(), machine.LaneMessage).Append(greetings, func(b []byte) []byte { return append(b, "hello"...) }); err != nil {
		panic(err)
	}
	fmt.Println(<-heard)
	// Output: hello
}
