// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire writes and reads what travels on a connection between two
// nodes: the handshake by tables of its fields, frames and receipts by hand,
// straight into and out of the buffers that are sent and received. The format
// is the one of transport.proto; golden bytes in testdata hold it still.
//
// Nothing here allocates in proportion to a length that was claimed: a frame
// is checked as a whole and then walked in place.
package wire
