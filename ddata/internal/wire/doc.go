// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire turns the messages between replicas, and what a durable replica stores, into
// bytes and back. The encoding is that of protobuf. Messages are written and read by the
// tables of their fields, with package machine/wire; the envelope, changes, entries, records
// and the parts of a parcel by hand, since they are frequent, or many in one message.
//
//	codec.go     Codec: the envelope, and what may be wrong with it
//	bodies.go    the list of bodies; their tables are in register.go, held.go, data.go,
//	             compare.go, remote.go and age.go
//	entry.go     entries, changes and versions
//	names.go     types and origins, which a message writes once
//	record.go    what is stored
//	parcel.go    messages that are larger than the transport takes
//
// # Guarantees
//
//   - Equal messages have equal bytes, and what was appended is what is decoded.
//   - Decoding trusts nothing: whatever the bytes are, it returns a message or an error that
//     wraps [ErrMalformed] or [ErrUnknown], does not panic, and allocates in proportion to
//     the bytes.
//   - Fields of later versions are kept in a register, which all replicas have to have alike, and passed over
//     elsewhere: [Spared] are those that a release may lack. A body of a later version is [ErrUnknown].
//   - A value that this node cannot read, as its type is not known or is a later version's,
//     decodes into a [table.Unknown], which tables refuse. The rest of the message counts.
//
// What a table can hold is for the table to judge: versions in order, for example.
//
// Everything but a [Joiner] may be used by several goroutines at once.
package wire
