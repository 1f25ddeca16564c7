// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//quorate:core

// Package cell holds the machine of one shard on one node: everything that the node knows and
// does about the shard's messages and entities. A node has one [Cell] for each shard of
// every kind that runs there. Which node is the home of a shard is decided by the control
// machine, package control, and comes in as a [protocol.CellInput].
//
// A Cell is made by [New] and knows no home yet. Messages of this node go in by
// [Cell.Accept], those of other nodes by [Cell.Deliver]; what is to be done comes out as
// [Actions], which the caller carries out before the next call. A Cell ends with
// [protocol.AbandonHosting].
//
// # Messages
//
// The cell of the node that accepts a message numbers it in a stream, keeps it
// until it is acknowledged, and transmits it to the home. The home delivers each
// stream in order and once each. When a home dies, the streams of the shard begin
// anew: the new home has a new base epoch, messages of a lower base are dropped,
// and every sender is told that the outcome of what was sent and not acknowledged
// or not answered is not known. The base epoch takes the place of a stream number:
// a home can tell old streams from new ones without having seen either.
//
// A full mailbox and a full window let senders of the same node stand in line, see
// waiting.go; a full mailbox holds other nodes back, see [protocol.Flow].
//
// # Guarantees
//
// A message is processed at most once, and the messages of one origin to one shard in the
// order in which they were accepted. An entity handles one message at a time. What is not
// processed has an error at its origin, or a counted drop that is repaired by the origin
// sending it again.
//
// # Limits
//
// Bounded are the window of this node, the messages of other nodes that wait, and each
// mailbox, see [Config]; the senders in a line are goroutines of the program, which bounds
// them by itself.
//
// # Concurrency
//
// A Cell belongs to one goroutine at a time. No function of the package starts a goroutine,
// locks, reads a clock or does input or output.
package cell
