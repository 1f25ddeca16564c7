// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/discovery"
)

// The contact points of a configuration file.
func ExampleNew() {
	config := discovery.Default()
	config.Endpoints = []string{"node-1:7946", "[::1]:7946"}
	found, err := discovery.New(config)
	if err != nil {
		panic(err)
	}
	targets, err := found.Lookup(context.Background(), discovery.Query{Service: "bank"})
	if err != nil {
		panic(err)
	}
	for _, target := range targets.List {
		fmt.Println(target)
	}
	// Output:
	// node-1:7946
	// [::1]:7946
}

// Errors say what to write.
func ExampleParseTarget() {
	_, err := discovery.ParseTarget("::1:7946")
	fmt.Println(err)
	// Output:
	// discovery: bad contact point "::1:7946": it has several colons, write an IPv6 address in brackets: [address]:port
}
