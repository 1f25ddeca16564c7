// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"fmt"
	"net"

	"github.com/quorate/quorate/transport/gate"
)

// The last of three connections finds two places taken by who has said nothing: the first gives way.
func ExampleGate() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	g := gate.New(listener, gate.Config{
		Pending: 2, HostPending: 2, Bytes: gate.PendingBytes,
		Closed: func(_ net.Addr, why gate.Reason) { fmt.Println("gave way:", why == gate.GaveWay) },
		Failed: func(err error) { fmt.Println(err) },
	})
	defer func() { _ = g.Close() }()
	for range 3 {
		client, err := net.Dial("tcp", g.Addr().String())
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = client.Close() }()
		server, err := g.Accept()
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = server.Close() }()
	}
	pending, admitted := g.Open()
	fmt.Println(pending, admitted)
	// Output:
	// gave way: true
	// 2 0
}
