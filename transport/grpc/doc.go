// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package grpc is the transport over TCP, with one connection a lane, with mutual TLS
// or without any. On a connection there is one bidirectional stream of gRPC or, for lanes
// of messages where Config.Lane allows it and both ends can, messages with their lengths
// and nothing else. Both are accepted on one port.
//
//	t, err := grpc.New(identity, transport.Default())
//	t.Handle(service, handler)
//	err = t.Start(ctx)
//	defer t.Close()
//
// Frames are not marshalled by protobuf: the stream's codec hands the bytes of
// a frame to gRPC as they are, and counts references, so that a buffer is only
// used again when neither the session nor any connection needs it. Without gRPC a
// frame is written from where it was encoded, and read into one pooled buffer.
//
// # Two wires
//
// With TLS the wire is negotiated by ALPN: "quorate-lane/1" beside "h2". Without TLS the
// first bytes tell. A peer that takes gRPC alone, since its Config.Lane says so or since
// it is older, is spoken to over gRPC: this is noticed once ([transport.FellBack]) and
// counted. A lane of messages asks anew with each connection.
//
// # Security
//
// Without certificates, the node listens and dials on the loopback interface
// only, unless Config.AllowInsecure is set. With certificates there is only
// one mode: TLS 1.3, both sides show a certificate that the authorities of the
// other have signed, for both client and server use, with the node's host
// among its names. The node of the handshake is the only sender of the
// connection.
//
// # Limits
//
//	frame               Config.MaxFrameBytes, checked before memory is allocated; on both
//	                    wires memory is taken as bytes come
//	receipts            64 KiB
//	streams             256 a connection
//	header list         16 KiB
//	TLS and preface     Config.HandshakeTimeout, then as long for the handshake
//	unfinished          Config.PendingConnections a remote IP address
//	flow control        1 MiB a stream
//	buffers             16 KiB for reading messages, 16 KiB for writing them (4 KiB
//	                    on the control lane), 2 KiB for receipts each way; those for
//	                    writing only while something is written
//
// # Sources
//
// A node whose host is in 127.0.0.0/8 binds its outgoing connections to that
// host, so that many nodes on one machine can be told apart by their source.
//
// # Concurrency
//
// All methods are safe for concurrent use. Close waits for all goroutines.
package grpc
