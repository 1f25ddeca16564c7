// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package exchange is the machine of a call by which a client asks much: how many requests it may have, what waits
// for it to be read, and when the call ends.
//
//	Enter ──> with sharding ──> Put: outbox ──> Take ──> Sending, Sent
//	                               │
//	                               └── Abandon: nobody reads it any more
//
// A request is open from Enter to Sent. A call ends when its client breaks a bound ([ErrWindow], [ErrUnread],
// [ErrStalled]), or when it sends no more and nothing is open ([Call.Finished]).
//
// The machine is stepped by whoever has something for it, one at a time. It reads no clock, starts no goroutine
// and does no I/O.
package exchange
