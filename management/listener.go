// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"time"
)

// A listener accepts ([bounded.Accept]), gives each connection a place ([bounded.admit]),
// by closing the one that has waited longest if it must, and takes the place back
// ([bounded.drop]). Requests keep the place of their connection while they are answered
// ([occupy]).

const (
	// grace is how long a new connection keeps its place in any case: time to shake hands
	// and to send a request. So n clients that send nothing and connect again as soon as
	// they are closed keep a newcomer waiting for grace × n / places.
	grace = 100 * time.Millisecond
	// crowdedEvery is how often at most the log says that connections were closed because
	// there were too many.
	crowdedEvery = time.Minute
)

// bounded is a listener with a bound on its open connections. When all places are taken,
// a new connection replaces one that waits for a request: of the host with the most
// connections, the one that has waited longest. So silent connections cannot keep others
// out, whose requests would otherwise wait in the backlog of the operating system behind
// all of them. A connection whose request is being answered is never closed for another,
// nor is one within its grace.
type bounded struct {
	net.Listener

	max int
	log *slog.Logger

	changed chan struct{} // A place may be free; of size one, since one goroutine accepts.
	closed  chan struct{} // Closed when the listener is closed.
	closing sync.Once

	crowded seldom // Connections closed for others.

	mu    sync.Mutex // Guards what follows, and the fields of each place that say so.
	open  map[*place]struct{}
	hosts map[string]int // Open connections by host.
}

// bound bounds the open connections of a listener.
func bound(l net.Listener, connections int, log *slog.Logger) *bounded {
	return &bounded{
		Listener: l, max: connections, log: log, changed: make(chan struct{}, 1), closed: make(chan struct{}),
		open: map[*place]struct{}{}, hosts: map[string]int{},
	}
}

// Accept waits for a connection, then makes room for it. It waits on while no connection
// may be closed, because requests are being answered or the grace has not passed.
func (l *bounded) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	p := &place{Conn: conn, of: l, host: hostOf(conn)}
	for {
		evicted, wait := l.admit(p)
		if evicted != nil {
			_ = evicted.Conn.Close() // Its client sent nothing.
			if n := l.crowded.again(crowdedEvery); n > 0 {
				l.log.Warn("management closes idle connections because all places are taken", "places", l.max, "closed", n, "host", evicted.host)
			}
		}
		if wait <= 0 {
			return p, nil
		}
		select {
		case <-l.changed:
		case <-time.After(wait):
		case <-l.closed:
			_ = conn.Close() // No request was read from it.
			return nil, net.ErrClosed
		}
	}
}

// Close closes the listener, and ends a wait of Accept.
func (l *bounded) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// admit gives a connection a place, if one is free or can be freed by closing evicted,
// which is for the caller to do. Otherwise it returns how long to wait for a place, if
// nothing changes before.
func (l *bounded) admit(p *place) (evicted *place, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if len(l.open) >= l.max {
		if evicted, wait = l.longestIdle(now); evicted == nil {
			return nil, wait
		}
		l.drop(evicted)
	}
	l.open[p] = struct{}{}
	l.hosts[p.host]++
	p.since = now
	return evicted, 0
}

// longestIdle returns the connection that is closed next for another, or the time until
// there is one.
func (l *bounded) longestIdle(now time.Time) (worst *place, wait time.Duration) {
	wait = time.Minute // If all are busy: the first that is not wakes Accept.
	for p := range l.open {
		left := grace - now.Sub(p.since)
		switch {
		case p.busy:
		case left > 0:
			wait = min(wait, left)
		case worst == nil,
			l.hosts[p.host] > l.hosts[worst.host],
			l.hosts[p.host] == l.hosts[worst.host] && p.since.Before(worst.since):
			worst = p
		}
	}
	return worst, wait
}

// drop removes a connection, if that was not done before.
func (l *bounded) drop(p *place) {
	if _, in := l.open[p]; !in {
		return
	}
	delete(l.open, p)
	if l.hosts[p.host]--; l.hosts[p.host] == 0 {
		delete(l.hosts, p.host)
	}
	l.wake()
}

func (l *bounded) wake() {
	select {
	case l.changed <- struct{}{}:
	default: // Accept is awake already.
	}
}

// place is a connection that holds one of the places.
type place struct {
	net.Conn

	of    *bounded
	host  string
	busy  bool      // Its request is being answered; guarded by the listener's lock.
	since time.Time // When its wait for a request began; guarded like busy.
}

// Close closes the connection and frees its place.
func (p *place) Close() error {
	p.of.mu.Lock()
	p.of.drop(p)
	p.of.mu.Unlock()
	return p.Conn.Close()
}

// begin keeps the place while a request is answered, until the function that it
// returns is called.
func (p *place) begin() (ended func()) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.busy = true
	return func() {
		p.of.mu.Lock()
		defer p.of.mu.Unlock()
		p.busy, p.since = false, time.Now()
		p.of.wake()
	}
}

// hostOf returns the host at the other end of a connection.
func hostOf(c net.Conn) string {
	text := c.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host
	}
	return text
}

// placeKey is the key of a request's connection in its context.
type placeKey struct{}

// withPlace is the context of the requests of a connection.
func withPlace(ctx context.Context, c net.Conn) context.Context {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	return context.WithValue(ctx, placeKey{}, c)
}

// occupy keeps the connection of a request while it is answered.
func occupy(ctx context.Context) (ended func()) {
	if p, ok := ctx.Value(placeKey{}).(*place); ok {
		return p.begin()
	}
	return func() {} // The connection has no listener of this package: in tests.
}
