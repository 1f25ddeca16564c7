// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire turns the messages between replicas, and what a durable replica stores, into
// bytes and back. The encoding is that of protobuf. Messages are written and read by the
// tables of their fields, with package machine/wire; the envelope, changes, entries, records and the parts of a large
// message by hand, since they are frequent, or many in one message.
//
//	codec.go     Codec: the envelope, and what may be wrong with it
//	bodies.go    the list of bodies; their tables are in register.go, held.go, data.go,
//	             compare.go, remote.go and storeversion.go
//	entry.go     entries, changes and versions
//	names.go     types and origins, which a message writes once
//	record.go    what is stored
//	parts.go     messages that are larger than the transport takes, cut into parts
//
// # Guarantees
//
//   - Equal messages have equal bytes, and what was appended is what is decoded.
//   - Whatever the bytes are, decoding returns a message or an error that wraps [ErrMalformed] or [ErrUnknown]. It does
//     not panic, and allocates in proportion to the bytes.
//   - Fields of later versions are kept in a register, of which all replicas have to have the same, and skipped
//     elsewhere: [Spared] are those that a release may lack. A body of a later version is [ErrUnknown].
//   - A value that this node cannot read, since its type is not known or is that of a later version, decodes into a
//     [table.Unknown], which tables refuse. The rest of the message is decoded.
//
// Decoding does not check what package table checks, such as the order of versions.
//
// Everything but a [Joiner] may be used by several goroutines at once.
package wire
