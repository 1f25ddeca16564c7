// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package multicast_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/multicast"
)

// Two nodes on one machine find each other over its loopback interface.
func Example() {
	config := multicast.Default()
	config.Interface, config.Window = "lo", 100*time.Millisecond
	config.Service, config.Announce = "bank", []string{"node-1.example:7946"}
	first, err := multicast.New(config)
	if err != nil {
		panic(err)
	}
	if err := first.Start(); err != nil {
		panic(err)
	}
	config.Announce = nil // The second node asks only.
	second, err := multicast.New(config)
	if err != nil {
		panic(err)
	}
	targets, err := second.Lookup(context.Background(), discovery.Query{Service: "bank"})
	fmt.Println(targets.List, err)
	fmt.Println(first.Close(), second.Close())
}
