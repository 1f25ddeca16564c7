// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package client is the host's side of the contract: what a connection to a plugin of
// any policy needs to be a strategy like any other. Each policy adds its messages.
//
//	Configure(conn) ─▶ Manifest
//	Ask(target) ─▶ request ─▶ send ─▶ plugin ─▶ answer, checked
//
// # Lifecycle and concurrency
//
// The values made here own nothing: the owner of the connection supervises and closes it.
// They may be called from any goroutine, several at a time.
//
// # Guarantees
//
//   - A call ends within its timeout, whatever the plugin does.
//   - An answer that is returned without an error passes the check of its policy,
//     with the class that the plugin declared when it was configured.
//   - Errors are of type [*plugins.CallError]; none exposes the transport.
package client
