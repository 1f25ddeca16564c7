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
// goroutines end with the lookup that they serve. Several lookups that want the same
// answer ask once.
//
// # Guarantees
//
//   - An answer is not asked for again before its time to live is over, within the bounds
//     of the configuration, and never given afterwards. [discovery.Targets] says what is
//     left of it.
//   - A lookup ends soon after its context, and where that has no end, after the time
//     limits of all its questions.
//   - An empty answer means that a server said so. What could not be asked in whole is an
//     error, which names each server and what is wrong with it.
//   - An answer counts only with the id of the query, from where it was sent to, with the
//     question in it. Ids are drawn from crypto/rand, and ports by the operating system,
//     for each query anew. Records of names that were not asked for are ignored.
//   - What is kept is bounded: 50,000 records. So is an answer: 64 KiB a question, and
//     [discovery.TargetsMax] contact points.
//
// # Non-guarantees
//
// Answers are not signed. Who is on the way to the server can give any answer, so that a
// contact point has to prove by its certificate what it belongs to. There is no
// connection to the server but plain UDP and TCP, and names are ASCII.
package dns
