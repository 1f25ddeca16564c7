// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// The messages by which cells of different nodes answer messages to entities: [Reply], [Ack], [Nack] and [Flow].

// Reply answers a message. It is sent to the node of the origin directly, and not along the stream. With Correlation 0
// it reports a Tell that was refused, for counting.
type Reply struct {
	// Kind and Shard are those of the message.
	Kind  string
	Shard ShardID
	// Correlation names the ask, as in the message.
	Correlation uint64
	// Code is the error, [CodeOK] when there is none.
	Code Code
	// Detail explains the error to people.
	Detail string
	// Clock is as in [Ack].
	Clock machine.Instant
	// Codec, Flags, Payload, Value: as in the message. The runtime sets them.
	Codec   uint16
	Flags   uint32
	Payload []byte
	Value   any
}

// Ack says that all messages of a stream up to Seq were put into mailboxes, or
// refused by a [Reply]. It goes to the stream's origin.
type Ack struct {
	Kind  string
	Shard ShardID
	Base  Epoch
	Seq   uint64
	// Clock is the time by the clock of the sender, set by the runtime, see package cell. 0: not known.
	Clock machine.Instant
}

// Nack says that the host of a shard lacks the messages of a stream from Seq on. It is sent to the origin of the
// stream, which sends them again.
type Nack struct {
	Kind  string
	Shard ShardID
	Base  Epoch
	Seq   uint64
}

// FlowState is the content of a [Flow].
type FlowState uint8

// The states of a flow. They are part of the wire.
const (
	FlowHold FlowState = iota + 1 // To an origin: the mailbox is full, send no more.
	FlowOpen                      // To an origin: there is room.
	FlowAsk                       // To a host: is the mailbox still full?
)

// Flow is flow control of the messages from one node to one entity.
type Flow struct {
	Kind  string
	Shard ShardID
	// Epoch is the epoch of the home that sends the Flow, or to which it is sent.
	Epoch  Epoch
	Entity string
	State  FlowState
}

// Position says up to which message a stream was delivered. The positions of all streams of a shard move with it from
// home to home.
type Position struct {
	// Origin names the stream, together with the shard and its base epoch.
	Origin gossip.NodeID
	// Seq is the number of the last message that was delivered.
	Seq uint64
}
