// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//quorate:core

// Package window keeps the messages that a node has sent, or is about to send, to one shard, as
// the bytes that travel. A [Window] takes a message by [Window.Push], hands it out by
// [Window.From] as often as it has to be transmitted, and lets it go by [Window.Cut] when it is
// acknowledged. In between there is no object for the message: its fields are encoded once, one
// message behind the other, into chunks of bounded size, and its number is that of its place.
//
// Of a message that somebody waits for, two things are kept apart from the bytes that travel: its
// deadline, since what travels is the time that is left of it; and that it has a correlation,
// by which it can be found.
//
// Which messages belong into a window, and where they go, is decided by package cell; the
// envelopes around them are written by package wire.
//
// # Memory
//
// Chunks come from a function of the caller, and go back to the caller as soon as the last
// message in them is over ([Items.AppendSpent]). An empty window has none.
//
// # Concurrency
//
// A Window belongs to one goroutine at a time.
package window
