// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"math"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The messages to entities; queue.go has the list in which they wait in a cell.

// Overdue is the deadline of a message whose sender said that it had passed. The
// message travels all the same, since it has a number of its stream.
const Overdue machine.Instant = math.MinInt64

// MaxHops is how often a message may be passed on. Route epochs only rise on the
// way, so that there are no loops; the bound is for nodes that do not obey.
const MaxHops = 32

// Message is one message to an entity, on its whole way. Messages are pooled by the
// runtime; each method of [Cell] says whether the cell or the caller owns the message
// afterwards. The fields are written before the message is given to a cell, except those
// that the cell of the origin assigns.
type Message struct {
	// Kind and Shard address the cell. The runtime sets and reads them.
	Kind  string
	Shard protocol.ShardID
	// Entity is the id of the entity.
	Entity string

	// Origin is the node whose cell accepted the message. [Cell.Accept] sets it.
	Origin gossip.NodeID
	// Base names the stream, together with Origin and Shard: the epoch at which
	// the streams of the shard last began anew. Assigned by the origin's cell.
	Base protocol.Epoch
	// Seq is the place in the stream, from 1; 0 for a local message that needs
	// none. Assigned by the origin's cell.
	Seq uint64
	// Route is the epoch of the map entry by which the message was sent last: a hint for
	// routing, never a reason to refuse the message. Assigned by cells.
	Route protocol.Epoch
	// Hops counts how often the message was passed on.
	Hops uint8
	// Own says that the entity's own instance made the message, on this node: a
	// timer of it fired. It never travels, and nobody is told when it is dropped.
	Own bool

	// Correlation names the ask that waits for the reply, unique in its origin's
	// process. 0: nobody waits.
	Correlation uint64
	// Deadline is when the asker stops waiting, by the clock of this process: no entity
	// begins the message after that. The wire carries the time that remains, see [ClockBounds].
	// 0: none. [Overdue]: the deadline had passed before the message came here.
	Deadline machine.Instant
	// Trace is the trace context, which no cell reads.
	Trace []byte
	// Codec numbers the encoding of Payload. Flags are set and read by the runtime alone.
	Codec uint16
	Flags uint32

	// Extra holds fields of the envelope that this version does not know, as they
	// came, so that they survive being passed on.
	Extra []byte
	// Payload is the encoded message. It may be nil on the node of the origin,
	// where Value suffices until the message is transmitted.
	Payload []byte
	// Value is the message as the sender passed it or the runtime decoded it. It
	// must not be modified any more.
	Value any

	next   *Message // The next message in the list that this one is in: a message is in one list at most.
	waiter *waiter  // The place of the message in a line, while its sender waits; nil mostly.
	self   about    // What the mailbox has of the message, see MailOf.
}

// smallPayload is the longest payload for which a message has room in itself.
const smallPayload = 96

// NewMessage returns an empty message with an empty payload that holds n bytes
// without growing. A small payload lies in the message itself, which saves an
// allocation.
func NewMessage(n int) *Message {
	if n > smallPayload {
		return &Message{Payload: make([]byte, 0, n)}
	}
	both := &struct {
		Message
		buffer [smallPayload]byte
	}{}
	both.Payload = both.buffer[:0]
	return &both.Message
}

// messageOverhead is the number of bytes that a message counts in bounded buffers beyond
// its parts.
const messageOverhead = 128

// cost is the number of bytes that the message counts in bounded buffers. One that is not encoded, for an entity of
// this node, counts without its value, which whoever sent it holds anyway.
func (m *Message) cost() int {
	return len(m.Payload) + len(m.Entity) + len(m.Trace) + messageOverhead
}

// Expired reports whether nobody waits for the message any more.
func (m *Message) Expired(now machine.Instant) bool {
	return m.Deadline != 0 && now >= m.Deadline
}

// Reset makes m ready for reuse. The memory of the payload stays; other buffers
// are dropped, since other values may still refer to them.
func (m *Message) Reset() { *m = Message{Payload: m.Payload[:0]} }
