// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package session is what the implementations of a transport have in common:
// lanes, queues, handshakes, sessions and refusals, on top of pipes that carry
// messages between two nodes. An implementation dials and accepts pipes, and
// leaves the rest to an [Endpoint].
//
//	Append ─> queue ─> writer ─> Pipe ═══════> Pipe ─> reader ─> Handler
//	            ^                                        │
//	            └─ reader <───── Pipe <══════ Pipe <── writer (receipts)
//	          outbound                              accepted
//
// # Goroutines
//
// An outbound lane has one goroutine that dials and supervises, and a reader
// and a writer while it is connected. An accepted connection has a reader,
// which calls the handlers, and the goroutine that called [Endpoint.Serve],
// which writes. All of them belong to the endpoint, and [Endpoint.Wait] waits
// for them.
//
// # Locks
//
// Endpoint.mu guards the maps, queue.mu one queue. They nest in this order
// only: Endpoint.mu, then queue.mu; two queues are locked together only under
// Endpoint.mu. Neither is held while a handler, a notice or a pipe is called;
// encode functions run under queue.mu. The slot of an inbound session is no
// lock: the connection that holds it may call handlers.
package session
