// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/session"
)

// nowhere is a dialer that cannot reach other nodes yet.
type nowhere struct{}

// Dial opens the pipe of a lane to an address.
func (nowhere) Dial(_ context.Context, to gossip.Address, k transport.LaneClass) (session.Pipe, error) {
	return nil, fmt.Errorf("no way to %s for lane %s", to, k)
}

// A new wire begins with its dialer. Sessions, queues and acknowledgements are the
// endpoint's.
func ExampleNew() {
	endpoint, err := session.New(transport.Identity{
		Node:    gossip.NodeID{Address: gossip.Address{Host: "10.0.0.1", Port: 7946}, UID: 1},
		Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
	}, transport.Default(), nowhere{}, nil)
	if err != nil || !endpoint.Begin() {
		fmt.Println("cannot begin:", err)
		return
	}
	defer endpoint.Wait()
	defer endpoint.Shutdown()
	_, err = endpoint.Probe(context.Background(), gossip.Address{Host: "10.0.0.2", Port: 7946}, nil)
	fmt.Println(err)
	// Output: no way to 10.0.0.2:7946 for lane control
}
