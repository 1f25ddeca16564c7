// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//quorate:core

// Package survey asks all nodes of a cluster about a kind at once: which shards they host, which entities run there,
// what state one of them is in; or has them tell all entities a message.
//
// A node has one [Machine]. [Ask] is the command to ask; exactly one [Finished] ends it, when all nodes have answered
// or the limit has passed. It has the answers, and says which nodes did not answer and why.
//
//	asking node                 other node
//	  │── Question, limit ──────>│ Inspection: the program looks, on a goroutine of its own
//	  │<────────────── Answer ───│ InspectionResult
//	  :
//	  │ Finished: answers and missing
//
// # Guarantees
//
//   - A question ends when all nodes have answered, or with its limit.
//   - A node serves a question at most once: questions are not repeated, and one that comes twice is known by the node
//     that asks and its number.
//   - A [Broadcast] tells the entities of each shard at one home at most, unless that home has said that it told none.
//
// # Limits
//
// A node has at most 16 questions of its own under way, and serves at most 16 of others; further ones are refused at
// once.
//
// # Concurrency
//
// The values of the package belong to one goroutine at a time. No function starts a goroutine, locks, reads a clock or
// does input or output.
package survey
