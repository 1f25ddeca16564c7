// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire turns the messages of sharding into bytes and back. The format is
// protobuf, as envelope.proto and control.proto of this module describe it, and is
// written and read by hand, with package machine/wire: an envelope is on the way of every message between
// entities. The tests compare it with the code that is generated from them.
//
// Decoding trusts nothing. What is malformed, out of range or too long is an
// error that wraps [ErrMalformed], and memory is allocated in proportion to the
// bytes that are there. Fields of an envelope that are not known survive its
// being passed on; those of control messages are ignored.
//
// All functions may be called from several goroutines.
package wire
