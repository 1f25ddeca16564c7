// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//quorate:core

// Package survey holds the machine that asks all nodes of a cluster about a kind at once: what they host,
// which entities live there, what one of them is at, and whether they have told all that live a message.
//
// A node has one [Machine]. [Ask] is a command to it, which [Finished] ends, always and once, when all
// have answered or the limit is over: with the answers, and with who did not answer and why.
//
//	asker                       node
//	  │── Question, limit ──────>│ Gather: the program looks, on a goroutine of its own
//	  │<────────────── Answer ───│ Gathered
//	  :
//	  │ Finished: answers and missing
//
// # Guarantees
//
//   - A question has an end: the answer of everybody, or the limit.
//   - A node acts upon a question once at most, however often it comes: a question is not repeated, and one that
//     comes twice is known by its asker and number.
//   - A [Broadcast] tells each shard at one home at most, unless that home has said that it told nothing.
//
// # Limits
//
// A node has 16 questions of its own under way and serves 16 of others; what is beyond is refused at once.
//
// # Concurrency
//
// The values of the package belong to one goroutine at a time. No function starts a goroutine, locks, reads a clock or
// does input or output.
package survey
