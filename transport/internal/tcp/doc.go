// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package tcp is the wire of message lanes that are not on gRPC: messages with their
// lengths, straight on a connection of TCP or of TLS.
//
//	opener    [ preface ] [ length │ message ] [ length │ message ] ...
//	acceptor  [ preface ] [ length │ message ] ...
//
// A length has four bytes, the lowest first, and does not count itself. What the
// messages are is the business of package session.
//
// The opener sends the [Preface] and waits for the same from the other end ([ExchangePreface])
// before it says anything else. With TLS the wire has been negotiated before ([Protocol]
// beside that of gRPC): the answer then tells the opener that its certificate was
// accepted, which the handshake of TLS 1.3 leaves open. Without TLS the preface is what
// tells the wires apart ([Recognize]). It is as long as that of HTTP/2, so that a server
// of gRPC alone has read all there is when it answers with its own greeting, and closes
// the connection without a reset that could overtake the answer.
//
// Lengths are checked before memory is taken, and memory is taken as bytes come: who
// announces much and sends little holds little.
package tcp
