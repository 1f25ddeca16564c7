// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package dns finds contact points in the domain name system: the addresses of a name
// (A, AAAA), or services with ports and hosts (SRV).
//
// # Use
//
//	config := dns.Default()
//	found, err := dns.New(config)
//	...
//	targets, err := found.Lookup(ctx, discovery.Query{Service: "bank.example."})
//
// With Port and Protocol in the query, or a service that is called _port._protocol.name,
// it asks for services. The path of a lookup:
//
//	name --search list--> complete names, in order --> questions --memory--> kept answer
//	                                                       |
//	                              id, port, question       v
//	     next server <--no answer-- UDP --too large, strangers--> TCP
//	                                 |                             |
//	                                 '---------> aliases <---------'
//	                                               |
//	                       records, or that there are none, kept for their time to live
//
// # Lifecycle and concurrency
//
// A [Discovery] is safe for concurrent use and need not be closed: sockets and
// goroutines end with the lookup that they serve. Of several lookups that want the same
// answer only one asks.
//
// # Guarantees
//
//   - An answer is not asked for again before its time to live is over, within the bounds
//     of the configuration, and never given afterwards. [discovery.Targets] says how much
//     of that time is left.
//   - A lookup ends soon after its context, and after the time limits of all its questions
//     if the context has no end.
//   - An empty answer means that a server said so. If any part of the answer cannot be had,
//     the lookup is an error, which names each server and what is wrong with it.
//   - An answer counts only if it comes from the address to which the query was sent, with
//     its id and its question. Ids are drawn from crypto/rand, ports by the operating system,
//     for each query anew. Records of names that were not asked for are ignored.
//   - The memory is bounded to 50,000 records, and an answer to 64 KiB a question and
//     [discovery.MaxTargets] contact points.
//
// # Non-guarantees
//
// Answers are not signed. An attacker on the way to the server can give any answer, so that a
// contact point has to prove by its certificate that it belongs to the cluster. Servers are
// asked over plain UDP and TCP only, and names are ASCII.
package dns
