// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//quorate:core

// Package handoff keeps the snapshots of entities between two instances: at a home that stops a
// shard, until the shard is given up, and at the next home, until each entity starts.
//
// A [Buffer] is made by its limits and is empty. [Buffer.Put] takes the snapshot of an entity that has
// stopped; [Buffer.End] gives all to the next home, whose Buffer takes them by [Buffer.Begin]. There
// [Buffer.Take] gives each to the instance that starts. [Buffer.Expire] drops what nobody has asked
// for, and [Buffer.Clear] everything, when a hosting ends without a next home that it knows.
//
// # Guarantees
//
// A snapshot is given out once: to the next instance of its entity, here or at the next home, whatever
// comes first. A Buffer knows one hosting: what Begin brings takes the place of all that was there. So
// a snapshot of an instance that has had a successor is never in it, as long as what is given to Begin
// comes from the home before, whose hosting has ended: that is for package control to see to, as for
// the positions of streams, with which snapshots travel.
//
// # Limits
//
// Bounded are the bytes of one snapshot and of all of a Buffer, see [Limits], and what it remembers of
// losses.
//
// # Concurrency
//
// A Buffer belongs to its cell. No function starts a goroutine, reads a clock or does input or output.
package handoff
