// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// The mailbox of an entity: push puts a message in, the cell counts how many are handed out, and
// pop takes the first out; cut, retract, forget and truncate take out what has become pointless.
// AheadQueue is how a worker reads what was handed out to it.

// Mail is a message in the mailbox of an entity: its value, and a pointer to what else is known
// of it. A tell of this node has no such thing, the tells of another node share that of
// their stream, and an ask has one of its own.
type Mail struct {
	// Value is the message as the sender passed it or the runtime decoded it; nil: the
	// runtime decodes the payload of the Message.
	Value any

	about *about // Nil for a tell of this node.
}

// about has what is known of a message beside its value. The zero value is that of a tell of this node.
type about struct {
	message     *Message        // Says everything, in place of the fields below; nil for most messages.
	from        *stream         // The stream by which the message came; nil for a message of this node.
	correlation uint64          // See Message.Correlation.
	deadline    machine.Instant // See Message.Deadline.
}

// MailOf pairs a decoded value with the envelope m.
func MailOf(value any, m *Message) Mail {
	m.self.message = m
	return Mail{value, &m.self}
}

// MailOfAsk pairs a decoded value with what the cell must know of an ask: its correlation, and its deadline; 0: it has
// none.
func MailOfAsk(value any, correlation uint64, deadline machine.Instant) Mail {
	return Mail{value, &about{correlation: correlation, deadline: deadline}}
}

// Message returns the message with all that is known of it; nil for most messages, of which the
// other methods say what there is.
func (m Mail) Message() *Message {
	if m.about == nil {
		return nil
	}
	return m.about.message
}

// Correlation names the ask that waits for the reply; 0: nobody waits.
func (m Mail) Correlation() uint64 {
	switch {
	case m.about == nil:
		return 0
	case m.about.message != nil:
		return m.about.message.Correlation
	default:
		return m.about.correlation
	}
}

// Deadline is when the asker stops waiting; 0: there is none.
func (m Mail) Deadline() machine.Instant {
	switch {
	case m.about == nil:
		return 0
	case m.about.message != nil:
		return m.about.message.Deadline
	default:
		return m.about.deadline
	}
}

// Origin returns the node whose cell accepted the message; self is this node.
func (m Mail) Origin(self gossip.NodeID) gossip.NodeID {
	switch {
	case m.about == nil:
		return self
	case m.about.message != nil:
		return m.about.message.Origin
	case m.about.from != nil:
		return m.about.from.origin
	default:
		return self
	}
}

// Own reports whether the entity's own instance made the message.
func (m Mail) Own() bool { return m.Message() != nil && m.Message().Own }

// Trace returns the trace context of the message; empty for none.
func (m Mail) Trace() []byte {
	if w := m.Message(); w != nil {
		return w.Trace
	}
	return nil
}

// Expired reports whether nobody waits for the message any more.
func (m Mail) Expired(now machine.Instant) bool {
	deadline := m.Deadline()
	return deadline != 0 && now >= deadline
}

// awaited reports whether the message may be handed out only by itself: somebody waits for
// the reply, or the message is the entity's own.
func (m Mail) awaited() bool {
	return m.about != nil && (m.Correlation() != 0 || m.Deadline() != 0 || m.Own())
}

// mailbox holds the messages to one entity, in their order, in a ring:
//
//	head             head+out               head+n
//	  │ present │ ahead ... │ waiting ...      │
//	  └─── handed out ──────┘
//
// The present message and those ahead are handed out to a worker, which reads the messages
// ahead without the lock of the cell. Invariants, between calls:
//
//	M1  what is in the first out places does not change, and its places are not used
//	    again, before the worker has given the messages back by [Instances.Ran], [Instances.Done],
//	    [Instances.Postpone] or [Instances.Lapse];
//	M2  a ring that grows leaves the former one as it was, for the worker that reads it;
//	M3  the places beyond the first n hold nothing, but for an entity that was left behind:
//	    nothing is put into its mailbox any more, and its worker may still read what was
//	    ahead.
//
// The zero value is empty.
type mailbox struct {
	ring  []Mail // The length is a power of two, or zero before the first message.
	head  uint32
	n     uint32
	out   uint32
	peak  uint32  // The largest n since the mailbox was last empty.
	first [1]Mail // The ring of an entity that has no more than one message at a time.
}

// ringKept is the largest ring that is always kept when a mailbox is empty. A larger one is kept if
// the messages since the mailbox was last empty have filled a good part of the ring: it would
// only be made anew for those that come next. [Maintenance.Sweep] takes the ring from an entity which is
// idle.
const ringKept = 64

// emptied ends that there are messages.
func (b *mailbox) emptied() {
	if len(b.ring) > ringKept && int(b.peak) < len(b.ring)/8 {
		b.shrink()
	}
	b.peak = 0
}

// at returns a place of the ring.
func (b *mailbox) at(i uint32) *Mail { return &b.ring[(b.head+i)&uint32(len(b.ring)-1)] } // A ring is never that long.

// waiting is how many messages are not handed out.
func (b *mailbox) waiting() int { return int(b.n - b.out) }

// push puts a message behind all others.
func (b *mailbox) push(m Mail) {
	if int(b.n) == len(b.ring) {
		b.grow()
	}
	*b.at(b.n) = m
	b.n++
	b.peak = max(b.peak, b.n)
}

// grow doubles the ring.
func (b *mailbox) grow() {
	if len(b.ring) == 0 {
		b.ring = b.first[:]
		return
	}
	larger := make([]Mail, max(4, 2*len(b.ring)))
	head := b.head & uint32(len(b.ring)-1) // A ring is never that long.
	n := copy(larger, b.ring[head:])
	copy(larger[n:], b.ring[:head])
	b.ring, b.head, b.first = larger, 0, [1]Mail{}
}

// shrink takes the memory of an empty mailbox.
func (b *mailbox) shrink() {
	if len(b.ring) > 1 {
		b.ring, b.head = b.first[:], 0
	}
}

// pop takes the first message, handed out or not.
func (b *mailbox) pop() Mail {
	at := b.at(0)
	m := *at
	*at = Mail{} // For the collector.
	b.head++
	b.n--
	if b.out > 0 {
		b.out--
	}
	if b.n == 0 {
		b.emptied()
	}
	return m
}

// cut takes out the message at a place, which is not handed out. Those behind it move up.
func (b *mailbox) cut(i uint32) {
	for ; i+1 < b.n; i++ {
		*b.at(i) = *b.at(i + 1)
	}
	b.n--
	*b.at(b.n) = Mail{}
}

// retract takes out the message of an ask of this node, self, unless it is handed out. False: it
// is not there.
func (b *mailbox) retract(self gossip.NodeID, correlation uint64) (m Mail, found bool) {
	for i := b.out; i < b.n; i++ {
		if m := *b.at(i); correlation != 0 && m.Correlation() == correlation && m.Origin(self) == self {
			b.cut(i)
			return m, true
		}
	}
	return Mail{}, false
}

// forget takes out what was handed out beyond the present message, and has been given back.
// The messages that wait move up.
func (b *mailbox) forget() {
	if b.out <= 1 {
		return
	}
	gone := b.out - 1
	for i := b.out; i < b.n; i++ {
		*b.at(i - gone) = *b.at(i)
	}
	b.out = 1
	for range gone {
		b.n--
		*b.at(b.n) = Mail{}
	}
}

// truncate forgets the messages that are not handed out.
func (b *mailbox) truncate() {
	for b.n > b.out {
		b.n--
		*b.at(b.n) = Mail{}
	}
	if b.n == 0 {
		b.emptied()
	}
}

// AheadQueue has the messages that were handed out ahead of their turn, see [Instances.Ahead]. The zero value
// has none.
type AheadQueue struct {
	ring    []Mail
	at, end uint32
}

// Next returns the next of the messages; false if there are no more.
func (a *AheadQueue) Next() (Mail, bool) {
	if a.at == a.end {
		return Mail{}, false
	}
	m := a.ring[a.at&uint32(len(a.ring)-1)] // A ring is never that long.
	a.at++
	return m, true
}

// Len returns how many messages Next has not returned yet.
func (a *AheadQueue) Len() int { return int(a.end - a.at) }

// ahead returns the messages that are handed out beyond the present one.
func (b *mailbox) ahead() AheadQueue {
	if b.out <= 1 {
		return AheadQueue{}
	}
	return AheadQueue{b.ring, b.head + 1, b.head + b.out}
}
