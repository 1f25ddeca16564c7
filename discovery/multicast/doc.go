// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package multicast finds the nodes on a developer's own network or machine: a query goes
// to a multicast group, and every node of the service answers. It is for development
// only. Nothing uses it unless a configuration names it.
//
// # Use
//
//	config := multicast.Default()
//	config.Service, config.Announce = "bank", []string{":7946"}
//	found, err := multicast.New(config)
//	...
//	err = found.Start() // Answers others from now on, where something is announced.
//	targets, err := found.Lookup(ctx, discovery.Query{Service: "bank"})
//	...
//	err = found.Close()
//
// The exchange, in datagrams of 1,024 bytes at most:
//
//	who asks                                every node of the group
//	   |---- query: nonce, service ----multicast---->|
//	   |                                             | is it the announced service?
//	   |<--- answer: nonce, contact points --unicast-|
//	   |     ... until the window is over
//
// A contact point without a host is at the address that its answer comes from.
//
// # Lifecycle and concurrency
//
// A [Discovery] is safe for concurrent use. Lookups need no Start and have a socket of
// their own each. Start listens and starts the one goroutine, which Close ends and waits
// for. Close also ends lookups under way; it works without Start, and twice.
//
// # Guarantees
//
//   - A lookup takes as long as the window, or ends with its context or with Close.
//   - What arrives is bounded: a datagram by its size, the contact points of a lookup by
//     [discovery.TargetsMax], the answers of a node by 200 a second. What is over is
//     counted, see [Discovery.Stats].
//   - An answer is never larger than its query, so that nobody can make the nodes flood
//     somebody else with more than he sends himself.
//   - A node that announces hears its own answer. Where it does not, the network carries
//     no multicast, and the lookup is an error.
//
// # Non-guarantees
//
// Anybody on the network can hear a query and answer it with any contact point, or not
// let an answer through: what is found is a hint, and only a certificate proves who
// answers there. For a node that announces nothing, silence is an empty answer, although
// it proves nothing. Most production networks carry no multicast.
package multicast
