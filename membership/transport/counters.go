// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package transport

// Counters is a snapshot of what a transport has counted since it was built.
// Every number only grows. Messages are what Append took; frames are batches
// of them.
type Counters struct {
	Sent     uint64 // Messages accepted by Append.
	Acked    uint64 // Messages acknowledged by peers.
	Lost     uint64 // Messages reported as lost in a PeerDown.
	Received uint64 // Messages handed to handlers.

	FramesSent     uint64 // Frames written, repetitions included.
	FramesResent   uint64 // Frames written again after a reconnect.
	FramesReceived uint64 // Frames handled.
	Duplicates     uint64 // Frames dropped because they had been handled.
	BytesSent      uint64 // Bytes of FramesSent.
	BytesReceived  uint64 // Bytes of FramesReceived.

	Full     uint64 // Appends that met ErrFull.
	TooLarge uint64 // Appends that met ErrTooLarge.

	UnhandledHere  uint64 // Messages received for a service without a handler.
	UnhandledThere uint64 // Messages that a peer had no handler for.

	Connects uint64 // Handshakes completed on connections that this node opened.
	Accepts  uint64 // Handshakes completed on connections that peers opened.
	Breaks   uint64 // Connections opened here that broke or fell silent in a session.

	RefusedInbound  [Reasons]uint64 // Connections that this node refused, by Reason.
	RefusedOutbound [Reasons]uint64 // Connections that were refused to this node, by Reason.
}
