// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package clientsim is the client in virtual time, for simulated worlds of gateways: the machine of production, which
// decides which node gets which request and how each ends, and around it what package client does with
// goroutines and gRPC, in the same order, as events of a world.
//
//	c := clientsim.Open(world, source, cfg, nodes)
//	c.Do(&clientsim.Request{Kind: "accounts", Entity: "acct-42", Deadline: world.Now() + time.Second, Done: ...})
//
// # Life cycle
//
// [Open] begins to connect to all nodes, and again whenever a session has ended. [Client.Close] ends all requests; what
// comes later for the client is dropped.
//
// # Guarantees
//
// A run is a function of the world, the source and what was asked for. All functions are called by the events of the
// world, on the goroutine of its run. A request is told its result once, by a call of its Done within a step of
// the client: it may begin another request.
//
// # Limits
//
// Nothing travels here: connections are those of the caller ([Node]), with the messages of the contract. TLS, tokens
// and the encoding are not simulated.
package clientsim
