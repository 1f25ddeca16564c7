// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bootstrap_test

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
)

// A node has found another node, and waits for the answer of that node and for the margin.
func Example() {
	self := discovery.Target{Host: "10.0.0.9", Port: 7946}
	other := discovery.Target{Host: "10.0.0.10", Port: 7946}
	search, start := bootstrap.NewSearch(bootstrap.Default(), self), time.Now()

	search.LookedUp(start, []discovery.Target{other, self})
	search.Dialled(other, discovery.Target{}, "connection refused")
	fmt.Println(search.Explain(search.Observe(start.Add(3*time.Second), nil)))

	seen := search.Observe(start.Add(6*time.Second), []bootstrap.Answer{{From: other}})
	fmt.Println(search.Missing(seen) == "", bootstrap.LowestAddress{}.DecideNow(seen).Reason)
	// Output:
	// 1 of 2 contact points, unchanged for 3 s of 5 s; 10.0.0.10:7946 does not answer: connection refused
	// true 10.0.0.9:7946 has the lowest address of 2 contact points
}
