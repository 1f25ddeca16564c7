// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
)

// [Endpoint.Answer] finds out on which connection the peer spoke last. What goes on this
// node's own is queued for the writer (say, saying); what goes with a receipt waits for that
// (attach). What has come either way is handed to its handlers at the end (hear).

// maxAnswers bounds the bytes of the answers that wait for the next receipt.
const maxAnswers = 4 << 10

// Answer sends a message to a peer with the next receipt for that peer's lane, or, if the
// peer spoke last with a receipt of its own, on the connection of this node's lane, see
// [transport.Answerer]. Either way it goes where the peer's question came, and so carries
// the system's acknowledgement of that too.
func (e *Endpoint) Answer(to gossip.NodeID, k transport.LaneClass, s transport.Service, encode func([]byte) []byte) bool {
	o, a := e.answerable(key{to, k})
	if s == 0 || o == nil {
		return false
	}
	return o.spokenTo(a) && o.say(s, encode) || a != nil && a.attach(s, encode)
}

// answerable returns this node's lane to a peer, if it is connected, and the connection of
// the peer's session, if there is one. Without a connection of its own, the message has to
// take the lane and have it dialled: a peer that this node cannot reach must not take it for
// well.
func (e *Endpoint) answerable(k key) (*outbound, *accepted) {
	e.mu.Lock()
	defer e.mu.Unlock()
	in, o := e.in[k], e.out[k]
	if e.closing.Load() || o == nil || !o.connectedNow() {
		return nil, nil
	}
	if in == nil {
		return o, nil
	}
	return o, in.conn.Load()
}

// handledOf returns how many frames of a peer's session its present connection has handled.
func (e *Endpoint) handledOf(k key) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if in := e.in[k]; in != nil {
		if a := in.conn.Load(); a != nil {
			return a.handled.Load()
		}
	}
	return 0
}

// spokenTo reports whether the peer spoke last with a receipt on this node's connection, not
// with a frame on its own, a. The reader of a says that it is busy before it counts a frame.
func (o *outbound) spokenTo(a *accepted) bool {
	heard := o.heardAfter.Load()
	return heard != 0 && (a == nil || !a.busy.Load() && a.handled.Load()+1 == heard)
}

// say has the writer send a message outside of the frames, before the next one, and reports
// whether it will.
func (q *queue) say(s transport.Service, encode func([]byte) []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.live || !q.hears || q.over {
		return false
	}
	q.scratch = encode(q.scratch[:0])
	if len(q.scratch) == 0 || len(q.said)+len(q.scratch) > maxAnswers {
		return false
	}
	q.said = wire.AppendSaid(q.said, uint16(s), q.scratch)
	q.used = true
	q.counts.answers.Add(1)
	q.rouse()
	return true
}

// saying returns what is to be sent outside of the frames, nil if there is nothing.
func (q *queue) saying() *wire.Buffer {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.said) == 0 {
		return nil
	}
	b := q.pool.Get()
	b.B = append(b.B, q.said...)
	q.said = q.said[:0]
	return b
}

// connectedNow reports whether the queue has a connection.
func (q *queue) connectedNow() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.live
}

// attach has the next receipt carry a message, and reports whether it will. The receipt
// leaves as soon as no handler is running, so that it acknowledges the frame that is
// answered.
func (a *accepted) attach(s transport.Service, encode func([]byte) []byte) bool {
	if !a.takes.Load() {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scratch = encode(a.scratch[:0])
	if len(a.scratch) == 0 || len(a.answers)+len(a.scratch) > maxAnswers {
		return false
	}
	a.answers = wire.AppendAnswer(a.answers, uint16(s), a.scratch)
	a.answering.Store(true)
	a.counts().answers.Add(1)
	a.poke()
	return true
}

// answersNow reports whether a receipt with answers is to be sent now.
func (a *accepted) answersNow() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.answers) > 0 && !a.busy.Load()
}

// hear hands the messages that came with a receipt to their handlers.
func (o *outbound) hear(answers []wire.Answer) {
	if len(answers) > 0 {
		o.heardAfter.Store(o.e.handledOf(key{o.peer, o.class}) + 1)
	}
	for _, m := range answers {
		h := (*o.e.handlers.Load())[transport.Service(m.Service)]
		if h == nil {
			o.counts.unhandledHere.Add(1)
			continue
		}
		o.counts.received.Add(1)
		h(o.peer, m.Payload)
	}
}

// hear hands the messages that came outside of the frames to their handlers. No receipt is owed
// for them, with which the system could send its own acknowledgement: so it is told to send that
// now, and to wait for a receipt again with the next. Otherwise it would acknowledge the next
// frame by itself as well, and the receipt would be one packet more.
func (a *accepted) hear(b []byte) error {
	said, err := wire.ParseSaid(b)
	if err != nil {
		return err
	}
	if system, ok := a.pipe.(Acknowledger); ok {
		system.Acknowledge()
	}
	if err := a.seize(); err != nil {
		return err
	}
	defer func() { <-a.in.slot }()
	a.begins()
	for _, m := range said {
		a.dispatch(m.Service, m.Payload)
	}
	a.busy.Store(false)
	if a.answering.Load() {
		a.poke()
	}
	return nil
}
