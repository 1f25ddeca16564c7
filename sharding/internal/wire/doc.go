// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire turns the messages of sharding into bytes and back. The format is
// protobuf, as envelope.proto and control.proto of this module describe it, and is
// written and read by hand, with package machine/wire, since every message between
// entities has an envelope. The tests compare the result with that of the code that is
// generated from the two files.
//
// Decoding trusts nothing. Bytes that are malformed, out of range or too long give an
// error that wraps [ErrMalformed], and memory is allocated in proportion to the
// bytes that are there. Unknown fields of an envelope survive its being passed on;
// unknown fields of control messages are ignored.
//
// All functions may be called from several goroutines.
package wire
