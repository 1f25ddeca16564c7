// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"time"

	"github.com/quorate/quorate/client/clientsim"
	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
)

// A session of a client with a node: two pipes, and the pings of gRPC, by which each end finds that the other one is
// gone. The end of the client is [clientsim.Session], that of the node is a call (call.go).

const (
	poll        = 20 * time.Millisecond
	pingTimeout = 15 * time.Second // Until a client notices that nothing comes through.
	pipeBytes   = 4 << 10
	nodeTimeout = 40 * time.Second // Until a node does.
)

var (
	errReset = errors.New("the connection was reset")
	errPing  = errors.New("the node does not answer pings")
)

// eof says that a client sends no more.
type eof struct{}

// ended is the last of what a node sends: why the call has ended.
type ended struct{ err error }

// dialer is a node as a client finds it.
type dialer struct {
	w *World
	p *program
	n *node
}

// session is a connection.
type session struct {
	w    *World
	p    *program
	n    *node
	life int
	peer *clientsim.Session
	up   *pipe // To the node.
	down *pipe
	call *call
	good time.Duration // When both directions were last whole.
	gone bool          // The client has closed it.
	dead bool          // The node knows nothing of it any more.
}

// Dial begins a session, if the node can be reached.
func (d dialer) Dial(peer *clientsim.Session) clientsim.Conn {
	s := &session{w: d.w, p: d.p, n: d.n, life: d.n.life, peer: peer, good: d.w.Now()}
	cut := func(l *link) bool { return l.cut > d.w.Now() }
	to, from := d.w.link(d.p, d.n), d.w.back(d.p, d.n)
	s.up = &pipe{
		w: d.w, most: pipeBytes, blocked: func() bool { return cut(to) || s.n.frozen > d.w.Now() },
		deliver: func(m any) { s.arrived(m) }, onWritable: peer.Writable,
	}
	s.down = &pipe{
		w: d.w, most: pipeBytes, blocked: func() bool { return cut(from) || d.p.blind > d.w.Now() },
		deliver: func(m any) { s.returned(m) }, onWritable: func() { s.call.writable() },
	}
	d.w.After(d.w.upTo(5*time.Millisecond), s.open)
	d.w.After(time.Second, s.ping)
	return s
}

// open begins the call at the node.
func (s *session) open() {
	switch {
	case s.gone:
	case !s.n.up || s.n.life != s.life:
		s.dead = true
		s.reset()
	case s.w.link(s.p, s.n).cut > s.w.Now() || s.w.back(s.p, s.n).cut > s.w.Now() || s.n.frozen > s.w.Now():
		s.w.After(poll, s.open)
	case s.n.going:
		s.dead = true
		s.returned(ended{errEnding})
	default:
		s.call = newCall(s)
	}
}

// arrived gives the node what the client has sent.
func (s *session) arrived(m any) {
	if s.call != nil && !s.dead {
		s.call.arrived(m)
	}
}

// returned gives the client what the node has sent.
func (s *session) returned(m any) {
	switch m := m.(type) {
	case *clientv1.Outcomes:
		s.peer.Received(m)
	case ended:
		s.peer.Lost(m.err)
	}
}

// reset tells the client that the node is gone, if that comes through.
func (s *session) reset() {
	s.w.After(s.w.upTo(5*time.Millisecond), func() {
		if s.gone {
			return
		}
		if s.w.back(s.p, s.n).cut > s.w.Now() {
			return // It finds out by a ping.
		}
		s.peer.Lost(errReset)
	})
}

// ping has each end find out that the other one is gone.
func (s *session) ping() {
	if s.gone && (s.dead || s.call == nil) {
		return
	}
	now := s.w.Now()
	whole := s.w.link(s.p, s.n).cut <= now && s.w.back(s.p, s.n).cut <= now && s.n.frozen <= now
	if whole && !s.gone && !s.dead {
		s.good = now
	}
	switch {
	case s.dead && whole && !s.gone: // Whatever it sends is answered by a reset.
		s.peer.Lost(errReset)
	case s.gone && (whole || now-s.good > nodeTimeout):
		s.fail()
	case !s.gone && now-s.good > pingTimeout:
		s.peer.Lost(errPing)
	}
	s.w.After(time.Second, s.ping)
}

// fail ends the call at the node, whose client is gone.
func (s *session) fail() {
	if s.call != nil && !s.dead {
		s.call.leave(errReset)
	}
	s.dead = true
}

// Send implements [clientsim.Conn].
func (s *session) Send(m *clientv1.Requests) bool {
	bytes := 0
	for _, r := range m.GetRequests() {
		bytes += 40 + len(r.GetPayload())
	}
	return s.up.send(m, bytes)
}

// CloseSend implements [clientsim.Conn].
func (s *session) CloseSend() { s.up.send(eof{}, 1) }

// Close implements [clientsim.Conn].
func (s *session) Close() {
	s.gone = true
	s.up.end()
	s.down.end()
	s.w.After(s.w.upTo(5*time.Millisecond), func() {
		if s.w.link(s.p, s.n).cut <= s.w.Now() && s.n.frozen <= s.w.Now() {
			s.fail()
		}
	})
}
