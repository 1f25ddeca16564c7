// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dnstest_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/quorate/quorate/discovery/dns/dnstest"
)

// The resolver of the standard library asks the server of the test.
func ExampleListen() {
	server, err := dnstest.Listen()
	if err != nil {
		panic(err)
	}
	server.Set("bank.example.", "A", time.Minute, "10.0.0.1", "10.0.0.2")
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, network, server.Addr())
	}}
	addresses, err := resolver.LookupHost(context.Background(), "bank.example.")
	fmt.Println(addresses, err)
	fmt.Println(server.Asked("bank.example.", "A"), server.Close())
	// Output:
	// [10.0.0.1 10.0.0.2] <nil>
	// 1 <nil>
}
