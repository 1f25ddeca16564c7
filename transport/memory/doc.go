// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package memory is a transport inside one process, for tests. Nodes are on a
// [Network], whose links can be cut, one way or both, healed, and broken. It
// keeps the contract of package transport by the same code as the transport
// over TCP, and works in the bubbles of testing/synctest.
//
// # Cuts
//
// A cut behaves as a network that swallows packets: what is sent over the cut
// direction waits, the closing of a connection is not noticed, and dialling
// hangs. After [Network.Heal] everything that waited goes on. A connection
// that owes an acknowledgement notices the cut after Config.MaxSilence.
// [Network.Break] behaves as a reset: both ends notice at once, and what was
// under way is gone.
//
// There is no loss, and no latency unless [Network.SetLatency] gives one: a message is at the other end at once.
//
// # Concurrency
//
// All methods are safe for concurrent use. A transport's goroutines end with
// its Close.
package memory
