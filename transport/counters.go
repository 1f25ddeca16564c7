// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import "github.com/quorate/quorate/machine"

// LaneKinds is the number of values of [LaneClass], the zero one included.
const LaneKinds = int(machine.LaneBulk) + 1

// LaneCounters are the counts of the lanes of one class, or of all lanes.
type LaneCounters struct {
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

	Answers uint64 // Messages sent with receipts or outside of frames, see Answerer; not among Sent.

	Full     uint64 // Appends that met ErrFull.
	TooLarge uint64 // Appends that met ErrTooLarge.

	UnhandledHere  uint64 // Messages received for a service without a handler.
	UnhandledThere uint64 // Messages that a peer had no handler for.

	Connects uint64 // Handshakes completed on connections that this node opened.
	Accepts  uint64 // Handshakes completed on connections that peers opened.
	Breaks   uint64 // Connections opened here that broke or fell silent in a session.
}

// Waiting returns how many messages were accepted and are neither acknowledged nor
// lost. The counters are read one after the other: what a busy lane does between two
// readings makes the result a little too small, never negative.
func (c *LaneCounters) Waiting() uint64 {
	if done := c.Acked + c.Lost; done < c.Sent {
		return c.Sent - done
	}
	return 0
}

// Add adds the counts of other lanes.
func (c *LaneCounters) Add(o *LaneCounters) {
	c.Sent += o.Sent
	c.Acked += o.Acked
	c.Lost += o.Lost
	c.Received += o.Received
	c.FramesSent += o.FramesSent
	c.FramesResent += o.FramesResent
	c.FramesReceived += o.FramesReceived
	c.Duplicates += o.Duplicates
	c.BytesSent += o.BytesSent
	c.BytesReceived += o.BytesReceived
	c.Answers += o.Answers
	c.Full += o.Full
	c.TooLarge += o.TooLarge
	c.UnhandledHere += o.UnhandledHere
	c.UnhandledThere += o.UnhandledThere
	c.Connects += o.Connects
	c.Accepts += o.Accepts
	c.Breaks += o.Breaks
}

// Counters is a snapshot of the counts of a transport since it was built. Every number
// only grows. Messages are the unit of Append; frames are batches of messages.
type Counters struct {
	LaneCounters // Of all lanes together.

	// Lanes are the same numbers by [LaneClass]; the element 0 is for classes that do
	// not exist.
	Lanes [LaneKinds]LaneCounters

	// Fallbacks counts the connections of message lanes that this node opened over gRPC,
	// although [Config.Lane] is [LaneTCP], since the other end takes nothing else.
	Fallbacks uint64

	NotAccepted uint64 // Failed calls of accept: the system handed no connection out.

	RefusedInbound  [Reasons]uint64 // Connections that this node refused, by Reason.
	RefusedOutbound [Reasons]uint64 // Connections that were refused to this node, by Reason.
}
