// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"math"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// The messages to entities and those that answer them, Reply, Ack, Need and Flow; then queue,
// the list in which messages wait in a cell.

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
	Shard ShardID
	// Entity is the id of the entity.
	Entity string

	// Origin is the node whose cell accepted the message. [Cell.Accept] sets it.
	Origin gossip.NodeID
	// Base names the stream, together with Origin and Shard: the epoch at which
	// the streams of the shard last began anew. Assigned by the origin's cell.
	Base Epoch
	// Seq is the place in the stream, from 1; 0 for a local message that needs
	// none. Assigned by the origin's cell.
	Seq uint64
	// Route is the epoch of the map entry by which the message was sent last: a hint for
	// routing, never a reason to refuse the message. Assigned by cells.
	Route Epoch
	// Hops counts how often the message was passed on.
	Hops uint8
	// Own says that the entity's own instance made the message, on this node: a
	// timer of it fired. It never travels, and nobody is told when it is dropped.
	Own bool

	// Correlation names the ask that waits for the reply, unique in its origin's
	// process. 0: nobody waits.
	Correlation uint64
	// Deadline is when the asker stops waiting, by the clock of this process: no entity
	// begins the message after that. The wire carries the time that remains, see [Clocks].
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
	// Size is the number of bytes that the message counts in bounded buffers. The runtime
	// sets Size when Payload is nil; otherwise 0 means that the size is computed.
	Size int

	next *Message // The next message in the list that this one is in: a message is in one list at most.
	// place is where on its passage the message was first handed over, plus one; 0:
	// nowhere; hasLeft: no matter where, since a copy may have left this node.
	place  uint64
	ticket *ticket // The place of the message in a line, while its sender waits; nil mostly.
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

// cost is the number of bytes that the message counts in bounded buffers.
func (m *Message) cost() int {
	if m.Size > 0 {
		return m.Size + messageOverhead
	}
	return len(m.Payload) + len(m.Entity) + len(m.Trace) + messageOverhead
}

// Expired reports whether nobody waits for the message any more.
func (m *Message) Expired(now machine.Instant) bool {
	return m.Deadline != 0 && now >= m.Deadline
}

// Reset makes m ready for reuse. The memory of the payload stays; other buffers
// are dropped, since other values may still refer to them.
func (m *Message) Reset() { *m = Message{Payload: m.Payload[:0]} }

// Reply answers a message. It goes straight to the origin's node, not along the
// stream. With Correlation 0 it reports a Tell that was refused, for counting.
type Reply struct {
	// Kind and Shard are those of the message.
	Kind  string
	Shard ShardID
	// Correlation names the ask, as in [Message].
	Correlation uint64
	// Code is the error, [CodeOK] when there is none.
	Code Code
	// Detail explains the error to people.
	Detail string
	// Clock is as in [Ack].
	Clock machine.Instant
	// Codec, Flags, Payload, Value: as in [Message]. The runtime sets them.
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
	// Clock is what the clock of the sender showed, set by the runtime, see [Clocks]. 0:
	// not known.
	Clock machine.Instant
}

// Need says that the host of a shard misses messages of a stream from Seq on.
// It goes to the stream's origin, which sends them again.
type Need struct {
	Kind  string
	Shard ShardID
	Base  Epoch
	Seq   uint64
}

// FlowState says what a [Flow] says.
type FlowState uint8

// The states of a flow. They are part of the wire.
const (
	FlowHold FlowState = iota + 1 // To an origin: the mailbox is full, send no more.
	FlowOpen                      // To an origin: there is room.
	FlowAsk                       // To a host: is the mailbox still full?
)

// Flow governs the flow of messages from one node to one entity.
type Flow struct {
	Kind  string
	Shard ShardID
	// Epoch is the epoch of the home that sends the Flow, or to which it is sent.
	Epoch  Epoch
	Entity string
	State  FlowState
}

// Position says up to which message a stream was delivered. The positions of all streams
// of a shard travel with the shard from home to home.
type Position struct {
	// Origin names the stream, together with the shard and its base epoch.
	Origin gossip.NodeID
	// Seq is the number of the last message that was delivered.
	Seq uint64
}

// queue is a list of messages through their next field. The zero value is empty.
type queue struct {
	head, tail *Message
	n, bytes   int
}

func (q *queue) push(m *Message) {
	m.next = nil
	if q.tail == nil {
		q.head = m
	} else {
		q.tail.next = m
	}
	q.tail = m
	q.n++
	q.bytes += m.cost()
}

func (q *queue) pop() *Message {
	m := q.head
	if m == nil {
		return nil
	}
	if q.head = m.next; q.head == nil {
		q.tail = nil
	}
	m.next = nil
	q.n--
	q.bytes -= m.cost()
	return m
}

// pushFront puts m before all others.
func (q *queue) pushFront(m *Message) {
	m.next = q.head
	if q.head == nil {
		q.tail = m
	}
	q.head = m
	q.n++
	q.bytes += m.cost()
}

// cut takes the messages with a number up to seq out of a queue that is in the order of
// the numbers, and returns them as a list.
func (q *queue) cut(seq uint64) *Message {
	list := q.head
	var last *Message
	for m := q.head; m != nil && m.Seq <= seq; m = m.next {
		q.n--
		q.bytes -= m.cost()
		last = m
	}
	if last == nil {
		return nil
	}
	if q.head = last.next; q.head == nil {
		q.tail = nil
	}
	last.next = nil
	return list
}

// prepend puts all of o before all others, and leaves o empty.
func (q *queue) prepend(o *queue) {
	if o.n == 0 {
		return
	}
	if o.tail.next = q.head; q.tail == nil {
		q.tail = o.tail
	}
	q.head = o.head
	q.n += o.n
	q.bytes += o.bytes
	*o = queue{}
}

// insert keeps the queue sorted by sequence number. It reports whether m was
// inserted: a message with an equal number is there already otherwise.
func (q *queue) insert(m *Message) bool {
	if q.tail == nil || q.tail.Seq < m.Seq {
		q.push(m)
		return true
	}
	at := &q.head
	for (*at).Seq < m.Seq {
		at = &(*at).next
	}
	if (*at).Seq == m.Seq {
		return false
	}
	m.next, *at = *at, m
	q.n++
	q.bytes += m.cost()
	return true
}
