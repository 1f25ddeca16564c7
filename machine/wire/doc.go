// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire writes and reads messages by a table of their fields, and appends and reads
// single fields, for codecs of frequent messages that are written by hand. The encoding is
// protobuf's.
//
//	tables:  Append ──> table ──> Uint, Text, Message, Texts ... <── table <── Read
//	write:   AppendUint, AppendString, AppendNode ... Begin ─ fields ─ End
//	read:    Next or Each ──> Field ──> Uint, Text, Data ... or Set, SetText, SetNode ...
//
// # Tables
//
// A table is a function that calls a row for each field of a message, with the number of
// the field and a pointer to it. It is used in both directions: [Append] walks it once, and
// each row appends its field; [Read] walks it until its rows have read the whole input.
// So a table only calls rows, and what it does besides depends on [Codec.Reading], or on
// what a row says that it has read. A message inside has a table of its own, which may be
// the method of a value that knows what the message does not.
//
// A row reads what is within its bound. Fields without a row are those of later versions.
// They are passed over, unless the last row of the table is [Keep]: that is for messages, and
// parts of messages, that a node stores and passes on, so that a node of this version
// takes nothing from those of a later one that talk through it. So what is added to such a message
// stands by itself: no place in a list that each writer makes anew.
//
// Numbers, texts and bytes that come twice are as in protobuf: the last one
// counts; lists of numbers and single messages that come twice are malformed. Numbers in
// lists are packed.
//
// # By hand
//
// The fields of a message are appended in the order of their numbers; a field with its
// zero value is left out, as in protobuf. The caller switches on [Field.Number] and
// decides what becomes of a field that it does not know: [Field.Raw] is the whole of it.
//
// # Guarantees
//
// The input may come from an attacker. Every reader returns an error that wraps
// [ErrMalformed] for bytes that are no field, for a wrong wire type, and for a value
// beyond the bound that the caller gives; none panics. [Next], [Field.Uint] and
// [Field.Data] allocate nothing; bytes that are returned are part of the input. [Read]
// allocates one codec, what texts and bytes take, up to eight bytes for each byte of packed
// numbers, and the lists of texts and messages, which the [Budget] of the message bounds.
// What an append function appends, the reader of the same name returns.
//
// The package keeps its API within a major version, and its bytes for ever: they are
// those of protobuf, which reads and writes the same messages.
//
// # Concurrency
//
// Nothing here but a [Codec] keeps state. Everything else may be called from several goroutines.
//
// The varints are encoding/binary's. The module protobuf has the same functions, but a
// state machine that only wants to bound a text would get a dependency with them.
package wire
