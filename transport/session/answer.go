// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
)

// answersMax bounds the bytes of the answers that wait for the next receipt.
const answersMax = 4 << 10

// Answer sends a message to a peer with the next receipt for that peer's lane, see
// [transport.Answerer].
func (e *Endpoint) Answer(to gossip.NodeID, k transport.LaneClass, s transport.Service, encode func([]byte) []byte) bool {
	a := e.answerable(key{to, k})
	return s != 0 && a != nil && a.attach(s, encode)
}

// answerable returns the connection of a peer's session, if this node has a connection to
// that peer as well. Without one, the message has to take the lane and have it dialled: a
// peer that this node cannot reach must not take it for well.
func (e *Endpoint) answerable(k key) *accepted {
	e.mu.Lock()
	defer e.mu.Unlock()
	in, o := e.in[k], e.out[k]
	if e.closing.Load() || in == nil || o == nil || !o.connectedNow() {
		return nil
	}
	return in.conn.Load()
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
	if len(a.scratch) == 0 || len(a.answers)+len(a.scratch) > answersMax {
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
