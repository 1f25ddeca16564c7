// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package client is the host's side of the contract: it turns a connection to a
// plugin into a strategy like any other.
//
//	Configure(conn) ─▶ Manifest
//	NewDowning(conn) ─▶ downing.Provider       Decide ─▶ wire ─▶ plugin ─▶ wire ─▶ Check
//	NewAllocation(conn) ─▶ allocation.Strategy
//
// # Lifecycle and concurrency
//
// The values made here own nothing: who made the connection supervises and closes
// it. They may be called from any goroutine, several at a time.
//
// # Guarantees
//
//   - A call ends within its timeout, whatever the plugin does.
//   - An answer that is returned without an error passes the check of its package,
//     with the class that the plugin declared when it was configured.
//   - Errors are of type [*plugins.CallError]; none exposes the transport.
package client
