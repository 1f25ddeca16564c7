// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package transporttest_test

import (
	"testing"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/memory"
	"github.com/quorate/quorate/transport/transporttest"
)

// world makes nodes of the transport under test. Its method Break, by which the suite
// resets the connections between two nodes, is that of the network.
type world struct {
	*memory.Network

	port uint16 // The last port that was given to a node.
}

// New returns a node, on the next port unless the test sets an address.
func (w *world) New(t testing.TB, s transporttest.Spec) transport.Transport {
	t.Helper()
	if s.Address == (gossip.Address{}) {
		w.port++
		s.Address = gossip.Address{Host: "10.0.0.1", Port: w.port}
	}
	id := transport.Identity{
		Node:    gossip.NodeID{Address: s.Address, UID: s.UID},
		Cluster: s.Cluster, Protocol: s.Protocol, Known: s.Known,
		ClusterID: func() gossip.ClusterID { return s.ID },
	}
	node, err := memory.New(w.Network, id, s.Config, memory.WithNotices(s.Notices))
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// A transport of your own passes the suite in a test: this is the body of
// func TestConformance(t *testing.T).
func ExampleTest() {
	t := new(testing.T) // The parameter of the test.
	transporttest.Test(t, transporttest.Plain, func(testing.TB) transporttest.World {
		return &world{Network: memory.NewNetwork()}
	})
}
