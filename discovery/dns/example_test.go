// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/dns"
	"github.com/quorate/quorate/discovery/dns/dnstest"
)

// The zone of the bank has service records, with the management ports of the nodes.
func ExampleDiscovery_Lookup() {
	server, err := dnstest.Listen() // In place of the servers of this machine.
	if err != nil {
		panic(err)
	}
	server.Set("_management._tcp.bank.example.", "SRV", time.Minute, "0 0 7626 node-1.bank.example.")
	server.Set("node-1.bank.example.", "A", time.Minute, "10.0.0.1")

	config := dns.Default()
	config.Servers = []string{server.Addr()}
	found, err := dns.New(config)
	if err != nil {
		panic(err)
	}
	query := discovery.Query{Service: "bank.example.", Port: "management", Protocol: "tcp"}
	targets, err := found.Lookup(context.Background(), query)
	if err != nil {
		panic(err)
	}
	for _, target := range targets.List {
		fmt.Println(target, target.IP)
	}
	fmt.Println(targets.Reason)
	fmt.Println(server.Close())
	// Output:
	// node-1.bank.example:7626 10.0.0.1
	// the services of _management._tcp.bank.example.
	// <nil>
}
