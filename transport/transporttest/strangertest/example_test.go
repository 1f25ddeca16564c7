// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package strangertest_test

import (
	"testing"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport/transporttest/strangertest"
)

// A stranger greets a node and sends it a frame: this is the body of func
// TestAStranger(t *testing.T), for a node that the test has started.
func ExampleStranger() {
	t := new(testing.T) // The parameter of the test.
	var node gossip.NodeID
	stranger := strangertest.Stranger{
		ID:      gossip.NodeID{Address: gossip.Address{Host: "10.0.0.9", Port: 7946}, UID: 9},
		Cluster: "bank",
	}
	stream, end, err := stranger.Greet(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if err := stream.SendMsg(strangertest.Frame(1, 7, []byte("garbage"))); err != nil {
		t.Fatal(err)
	}
}
