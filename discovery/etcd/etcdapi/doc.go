// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package etcdapi is the way to an etcd, for whatever keeps something there: contact points,
// leases. It has the settings of an operator, connects by them, and says in one line what to do
// where etcd cannot be reached or refuses.
//
// # Lifecycle and concurrency
//
// A [Config] is a plain value: [Config.Validate] checks it, [Config.Connect] makes a client of it,
// and [Config.Explain] says of an error of that client what to do. The client belongs to its
// caller, who closes it.
//
// # Guarantees
//
//   - A password does not go over a connection that others can read: [Config.Validate] refuses
//     http beyond this machine where there is a password. Where there are certificates it refuses
//     http altogether, or they would not be used.
//   - A password and certificates that have changed in their files count from the next client on.
//   - While an answer is awaited, a connection that died in silence is noticed within 20 seconds.
//
// # Non-guarantees
//
// A client keeps the certificates with which it was made: who uses one for long closes it at times,
// and connects anew. The limit of a request is that of the context which its caller gives; a
// client has none of its own. SRV records that name the members of etcd are not looked up.
package etcdapi
