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
//	err = found.Start() // The node answers queries from now on, if it announces something.
//	targets, err := found.Lookup(ctx, discovery.Query{Service: "bank"})
//	...
//	err = found.Close()
//
// The exchange, in datagrams of 1,024 bytes at most:
//
//	asking node                             every node of the group
//	   |---- query: nonce, service ----multicast---->|
//	   |                                             | is it the announced service?
//	   |<--- answer: nonce, contact points --unicast-|
//	   |     ... until the window is over
//
// A contact point without a host is at the address from which its answer comes.
//
// # Lifecycle and concurrency
//
// A [Discovery] is safe for concurrent use. A lookup needs no Start and has a socket of its
// own. Start listens for queries and starts the goroutine that answers them, which Close ends
// and waits for. Close also ends lookups under way; it works without Start, and twice.
//
// # Guarantees
//
//   - A lookup takes as long as the window, or ends with its context or with Close.
//   - A datagram is bounded by its size, the contact points of a lookup by
//     [discovery.MaxTargets], the answers of a node to 200 a second. Queries beyond that are
//     counted, see [Discovery.Stats].
//   - An answer is never larger than its query, so that an attacker who sends queries in the
//     name of a victim can make the nodes send no more bytes than the attacker sends.
//   - A node that announces itself hears its own answer. If it does not, the network carries
//     no multicast, and the lookup is an error.
//
// # Non-guarantees
//
// Anybody on the network can hear a query and answer it with any contact point, or drown the
// answers of others: a contact point is a hint, and only a certificate proves that a node of
// the cluster is there. For a node that announces nothing, silence is an empty answer,
// although the network may just carry no multicast. Most production networks carry none.
package multicast
