// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire appends and reads the fields of messages, for codecs that are written by
// hand or that check what generated code has read. The encoding is protobuf's.
//
//	write:  AppendUint, AppendString, AppendNode ... Begin ─ fields ─ End
//	read:   Next or Each ──> Field ──> Uint, Text, Data ... or Set, SetText, SetNode ...
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
// [Field.Data] allocate nothing; bytes that are returned are part of the input.
// What an append function appends, the reader of the same name returns.
//
// The package keeps its API within a major version, and its bytes for ever: they are
// those of protobuf, whose generated code reads and writes the same messages.
//
// # Concurrency
//
// Nothing here keeps state. Everything may be called from several goroutines.
//
// The varints are encoding/binary's. The module protobuf has the same functions, but a
// state machine that only wants to bound a text would get a dependency with them.
package wire
