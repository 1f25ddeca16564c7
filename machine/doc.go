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
// A [Driver] owns one goroutine and one bounded inbox. It steps the machines of
// one node and carries the outbox out over a transport, a clock and an event
// stream. It takes no decision.
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
// hear of each other. A [Group] says what that order is. All components of a
// node share one goroutine, so that there is no queue between them and no way
// to wait for each other.
//
// # Lifecycle
//
//	NewDriver ──> Attach ... ──> Start ──> Attach, Post, PostWait, Receive ... ──> Close
//
// A panic of a machine ends the process: a broken invariant must not spread to
// other nodes. A panic of a strategy that was called is an answer.
//
// # Guarantees
//
// Inputs of one poster are fed in the order in which they were posted. A timer
// fires once for each time that it was armed, never before its time, and not
// after it was disarmed or armed anew. Every [Call] is answered once. An input
// that Post refused was not fed. Nothing is promised about the order of inputs
// of different posters, and inputs that wait at Close are dropped.
//
// # Concurrency
//
// A Machine, an Outbox and a Group belong to one goroutine. The methods of
// Driver, Handle and SystemClock are safe for concurrent use.
package machine
