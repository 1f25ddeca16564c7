// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package dnstest is a DNS server for tests, on the loopback interface, over UDP and
// TCP.
//
//	server := dnstest.Start(t)
//	server.Set("bank.example.", "A", time.Minute, "10.0.0.1", "10.0.0.2")
//	config := dns.Default()
//	config.Servers = []string{server.Addr()}
//
// The server answers like a real one: with aliases and the records to which they lead, with
// the addresses of the hosts of services, with the time for which a client may remember that
// a name does not exist, and truncated over UDP where the answer is larger than the client
// takes. [Server.Intercept] makes the server slow, silent, broken or hostile.
//
// The server ends with the test. All methods are safe for concurrent use.
package dnstest
