// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"container/list"
	"net"
	"sync"
)

// places is a listener with a bound on its open connections. When all places are taken a new connection
// replaces the one that has said nothing for longest; if all have spoken, it is closed itself. So neither silent
// connections keep clients out, nor do clients cost more than the bound.
type places struct {
	net.Listener

	most int
	s    *Server

	mu     sync.Mutex
	open   int
	silent list.List // Of *place, the oldest first.
}

// bound bounds the open connections of a listener.
func bound(l net.Listener, most int, s *Server) net.Listener {
	return &places{Listener: l, most: most, s: s}
}

// Accept waits for a connection that gets a place.
func (l *places) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p := &place{Conn: conn, of: l}
		evicted, ok := l.admit(p)
		if evicted != nil {
			_ = evicted.Conn.Close() // Its client sent nothing.
		}
		if evicted != nil || !ok {
			l.s.counters.closed.Add(1)
			l.s.say("the gateway closes connections because all places are taken", "places", l.most, "peer", conn.RemoteAddr().String())
		}
		if ok {
			return p, nil
		}
		_ = conn.Close() // Nothing was read from it.
	}
}

// admit gives a connection a place, if one is free or can be freed by closing evicted, which is for
// the caller to do.
func (l *places) admit(p *place) (evicted *place, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most {
		oldest := l.silent.Front()
		if oldest == nil {
			return nil, false
		}
		evicted = oldest.Value.(*place)
		l.drop(evicted)
	}
	l.open++
	l.s.counters.connections.Add(1)
	p.in, p.silent = true, l.silent.PushBack(p)
	return evicted, true
}

// drop takes the place of a connection back, once.
func (l *places) drop(p *place) {
	if !p.in {
		return
	}
	p.in = false
	l.open--
	l.s.counters.connections.Add(-1)
	l.speaks(p)
}

// speaks notes that something has come on a connection, or that this does not matter any more.
func (l *places) speaks(p *place) {
	if p.silent != nil {
		l.silent.Remove(p.silent)
		p.silent = nil
	}
}

// place is a connection that has a place.
type place struct {
	net.Conn

	of     *places
	in     bool          // It has its place; guarded by the lock of the listener, as is silent.
	silent *list.Element // Nil when something has come on it.
	spoken bool          // Of the one goroutine that reads.
}

// Read reads, and notes the first bytes.
func (p *place) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if n > 0 && !p.spoken {
		p.spoken = true
		p.of.mu.Lock()
		p.of.speaks(p)
		p.of.mu.Unlock()
	}
	return n, err
}

// Close closes the connection and frees its place.
func (p *place) Close() error {
	p.of.mu.Lock()
	p.of.drop(p)
	p.of.mu.Unlock()
	return p.Conn.Close()
}
