// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package machine is the one pattern on which every protocol of this project
// stands: machines decide, drivers act.
//
// A [Machine] is a plain, single-threaded value. It is handed one input and
// the current time, and appends everything that must happen as a consequence
// to an [Outbox], in order. It starts no goroutine, reads no clock, draws
// randomness only from the source that it was built with, does no input or
// output, and never blocks. Two machines built alike and fed alike behave
// alike, to the byte.
//
// A [Driver] owns one goroutine and one bounded inbox. It steps its machine
// and carries the outbox out over a transport, a clock and an event stream.
// It takes no decision.
//
//	           inputs                        effects
//	received ─┐                            ┌─> Send     (transport)
//	timer    ─┤   ┌───────┐   ┌────────┐   ├─> Arm      (clock)
//	called   ─┼──>│ inbox │──>│Machine │──>┼─> Publish  (other machines, users)
//	command  ─┤   └───────┘   └────────┘   ├─> Call     (strategies)
//	event    ─┘    bounded       Step      └─> Decide   (decision log)
//
// The simulation steps the very same machines on one thread in virtual time.
//
// # Several machines on a node
//
// A [Component] is a machine with the number of the service under which its
// messages travel and the codec of those messages. What one component of a
// node publishes is an input of every other component of that node, in the
// order of publication; that is the only way in which machines of one node
// hear of each other.
//
// # Concurrency
//
// A Machine and an Outbox belong to one goroutine. Driver methods are safe for
// concurrent use.
package machine
