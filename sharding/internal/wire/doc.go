// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire turns the messages of sharding into bytes and back. The format is
// protobuf, as envelope.proto and control.proto of this module describe it. Control
// messages are written and read by the tables of their fields, with package machine/wire;
// envelopes by hand, since every message between entities has one. The tests read and
// write the bytes by the descriptors of the two files, `make generate` makes them anew.
//
// Decoding trusts nothing. Bytes that are malformed, out of range or too long give an
// error that wraps [ErrMalformed], and memory is allocated in proportion to the
// bytes that are there. Unknown fields of an envelope survive its being passed on, as
// many as the frame has; unknown fields of control messages, which their receiver alone
// reads, are ignored: [Spared] are those that a release may lack.
//
// All functions may be called from several goroutines.
package wire
