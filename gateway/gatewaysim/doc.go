// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package gatewaysim names runs of simulated clients that are no members, and of the gateways that they ask, so that a
// program can run them and repeat a failure by name, seed and number of nodes. It is what
// `quorate soak` runs of clients.
//
// A run starts clients with the machine of production, and nodes whose calls are the machine of production, with a
// model of entities behind them, while nodes crash, end, come back, stand still and lose standing, and connections are
// cut, stall and break. All the time it is checked that each request ends once and in time, that nothing is handled
// twice or after it was called undelivered, that replies belong to their requests, and that bounds are kept; in the end
// every request has to succeed. A run is a function of its seed and its number of nodes: it takes virtual time, no real
// clock and one goroutine, that of the caller.
//
// # Life cycle and concurrency
//
// The package has no state, and its functions may be called by several goroutines.
//
// # Limits
//
// The entities are a model of what package sharding promises; sharding itself is run by `shardingsim`. gRPC is a model
// too: bytes come in order or the connection ends. The names of the scenarios and what happens in them may change in
// any release, and with that what a seed stands for.
package gatewaysim
