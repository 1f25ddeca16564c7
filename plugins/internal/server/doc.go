// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package server is the plugin's side of the contract: it takes the calls of a
// host, and asks the strategy. Each policy adds its services, whose calls use [Answer].
//
//	Configure ──▶ settings ──▶ Strategy.Configure ──▶ class, or setting errors
//	Answer ─────▶ slot ─▶ question ─▶ strategy ─▶ answer, or a status
//
// # Lifecycle and concurrency
//
// [New] makes a server that knows its strategy but not the settings; the first
// call of Configure that succeeds makes it ready, and every other call before that
// is refused. Calls run on the goroutines of the gRPC server, at most
// [plugins.MaxCalls] at a time; a strategy that ignores the end of its context
// keeps its slot until it returns.
//
// # Guarantees
//
// A panic of the strategy fails that call and nothing else. The text of the panic is
// bounded before it is sent.
package server
