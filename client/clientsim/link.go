// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clientsim

import (
	"errors"
	"time"

	"github.com/quorate/quorate/client/internal/broker"
	"github.com/quorate/quorate/client/internal/wire"
	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
)

// The connection to one node: dial begins a session, whose writer takes what is queued (write), until it is lost; after
// a pause comes the next one.

const retryFirst = 50 * time.Millisecond

// errTimeout ends a session that does not begin in time.
var errTimeout = errors.New("the node does not begin in time")

// Node is where a client can connect to.
type Node interface {
	// Dial begins a session. It calls nothing of s before it has returned.
	Dial(s *Session) Conn
}

// Conn is the connection of a session, as its client sees it.
type Conn interface {
	// Send hands a message over, and reports whether there is room for another one; if not, it calls
	// [Session.Writable] when there is.
	Send(m *clientv1.Requests) (room bool)

	// CloseSend says that the client sends no more.
	CloseSend()

	// Close ends the session for the client, which hears nothing of it any more.
	Close()
}

// Session is what a node's messages come to.
type Session struct {
	l     *link
	conn  Conn
	began time.Duration
	up    bool // The welcome has come.
	full  bool // The connection has no room.
	due   bool // The writer comes.
	going bool // The node takes no further requests.
	half  bool // The client sends no more.
	over  bool
}

// link is the connection to one node.
type link struct {
	c       *Client
	at      int
	node    Node
	session *Session
	pause   time.Duration
}

// dial begins a session.
func (l *link) dial() {
	if l.c.closed {
		return
	}
	s := &Session{l: l, began: l.c.w.Now()}
	l.session = s
	s.conn = l.node.Dial(s)
	l.c.w.After(l.c.cfg.DialTimeout, func() {
		if !s.up {
			s.Lost(errTimeout)
		}
	})
}

func (l *link) end() {
	if s := l.session; s != nil && !s.over {
		s.over = true
		s.conn.Close()
	}
}

// wake has the writer come.
func (l *link) wake() {
	if l.session != nil {
		l.session.wake()
	}
}

func (s *Session) wake() {
	if s.due || !s.up || s.full || s.half || s.over {
		return
	}
	s.due = true
	s.l.c.w.After(s.l.c.soon(), s.write)
}

// write sends what is queued for the node.
func (s *Session) write() {
	s.due = false
	c := s.l.c
	for s.l.session == s && !s.full && !s.half && !c.closed {
		now := c.now()
		taken := c.broker.Take(now, s.l.at, wire.FrameBytes, nil, &c.out)
		m := &clientv1.Requests{Requests: wire.Requests(taken, now)}
		c.deliver()
		if len(taken) == 0 {
			if s.going {
				s.half = true
				s.conn.CloseSend()
			}
			return
		}
		if !s.over { // Else it has ended, and the writer has not heard of it yet.
			s.full = !s.conn.Send(m)
		}
	}
}

// Writable says that the connection has room again.
func (s *Session) Writable() {
	s.full = false
	s.wake()
}

// Received takes a message of the node.
func (s *Session) Received(m *clientv1.Outcomes) {
	if s.over || s.l.c.closed {
		return
	}
	c := s.l.c
	if !s.up {
		w := m.GetWelcome()
		if w == nil {
			s.Lost(errors.New("the node does not begin with a welcome"))
			return
		}
		s.up = true
		c.step(func(now broker.Instant) { c.broker.Up(now, s.l.at, w.GetNode(), int(w.GetWindow()), &c.out) })
		s.wake()
		return
	}
	outcomes := make([]broker.Outcome, 0, len(m.GetOutcomes()))
	for _, o := range m.GetOutcomes() {
		outcomes = append(outcomes, wire.Outcome(o))
	}
	c.step(func(now broker.Instant) { c.broker.Heard(now, s.l.at, outcomes, &c.out) })
	if m.GetGoing() {
		c.step(func(broker.Instant) { c.broker.Going(s.l.at, &c.out) })
		s.going = true
		s.wake()
	}
}

// Lost says that the session has ended, and why. The client notices at once, and its machine when reader and writer
// have both ended.
func (s *Session) Lost(err error) {
	if s.over {
		return
	}
	s.over = true
	s.conn.Close()
	c := s.l.c
	if c.closed {
		return
	}
	c.w.After(c.soon(), func() {
		if c.closed {
			return
		}
		s.l.session = nil
		c.step(func(broker.Instant) { c.broker.Down(s.l.at, err.Error(), false, &c.out) })
		if c.w.Now()-s.began > c.cfg.RetryInterval {
			s.l.pause = retryFirst
		}
		pause := s.l.pause
		s.l.pause = min(2*pause, c.cfg.RetryInterval)
		c.w.After(pause+time.Duration(c.source.Int64N(int64(pause/2))), s.l.dial)
	})
}
