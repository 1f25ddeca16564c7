// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd_test

import (
	"cmp"
	"fmt"
	"time"

	"github.com/quorate/quorate/fd"
)

// A phi detector of a node that answered each second, and then no more.
func ExamplePhiAccrual() {
	d, err := fd.NewPhiAccrual(fd.Default())
	if err != nil {
		panic(err)
	}
	now := time.Unix(0, 0)
	for range 1000 {
		now = now.Add(time.Second)
		d.Heartbeat(now)
	}
	for _, silence := range []time.Duration{time.Second, 4 * time.Second, 5 * time.Second} {
		at := now.Add(silence)
		fmt.Printf("%v: phi %.1f, available %t\n", silence, d.Phi(at), d.Available(at))
	}
	// Output:
	// 1s: phi 0.0, available true
	// 4s: phi 0.3, available true
	// 5s: phi 37.6, available false
}

// A registry returns the moment at which to look again, so that nothing is polled.
func ExampleRegistry() {
	config := fd.Default()
	config.Strategy = fd.StrategyDeadline
	factory, err := fd.NewFactory(config)
	if err != nil {
		panic(err)
	}
	registry, err := fd.NewRegistry(config, factory, cmp.Compare[string])
	if err != nil {
		panic(err)
	}
	start := time.Unix(0, 0)
	registry.Expect("node-1", start)
	registry.Expect("node-2", start)
	registry.Heartbeat("node-1", start.Add(100*time.Millisecond))

	next, _ := registry.Due(nil)
	fmt.Println("look again after", next.Sub(start))
	fmt.Println("unavailable then:", registry.Unavailable(next))
	// Output:
	// look again after 4.1s
	// unavailable then: [node-1]
}

// Six nodes on a ring, each monitored by two others.
func ExampleRing() {
	nodes := []string{"a", "b", "c", "d", "e", "f"}
	hash := func(node string) uint32 { return uint32(node[0]) }
	ring := fd.NewRing(2, nodes, hash, cmp.Compare[string])
	fmt.Println("all reachable:", ring.Receivers("a", nil))
	fmt.Println("b unreachable:", ring.Receivers("a", func(node string) bool { return node == "b" }))
	fmt.Println("d monitored by:", ring.Observers("d", nil))
	// Output:
	// all reachable: [b c]
	// b unreachable: [b c d]
	// d monitored by: [b c]
}
