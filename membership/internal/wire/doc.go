// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire turns the messages of package protocol into bytes and back, by tables of
// their fields that package machine/wire uses in both directions. The bytes are those of
// protobuf, as membership.proto describes them; a test compares the two. What refers to
// nodes has a form of its own, a struct beside its table and the functions that convert.
//
// A message may come from a sender that lies. [Codec.Decode] refuses what is larger than
// [MaxSize] before it looks at it, what is not well formed, and what a state, a delta or
// a digest cannot be: package gossip validates those. Whatever arrives, it returns a
// message or an error that unwraps to [ErrMalformed] or [gossip.ErrInvalid], does not
// panic, and allocates in proportion to the size. It has no clock: whether a time is
// plausible is for the receiver to judge.
//
// A message that this version does not know has a type of its own, [Unknown],
// because a newer member may send it. Fields that this version does not know are kept
// where a member passes on what it hears, and passed over elsewhere:
//
//	More      what a member, or the leader for the registers, says beside a version
//	Config    the voters, which are one value with all of its fields
//	Downing   the downing strategy, the same
//
// All of them are bounded by [gossip.MaxUnknownBytes] a record. What is added to the columns of
// a list of records cannot be kept, as nobody knows whose the values are: it goes into More. Nor can
// a place in the table of nodes, which each writer makes anew: what is added names nodes by their ids.
// [Spared] are the fields that members of one cluster may lack today.
//
// A list of two million empty texts is four megabytes on the wire and many
// times that in memory: so lists are counted before they are made, and what comes twice is
// refused.
//
// Lists of records are columns, and nodes are places in a table, see the
// .proto file: a state of 1,000 members takes about 45 KB.
//
// The package has no state. Everything may be used by several goroutines.
package wire
