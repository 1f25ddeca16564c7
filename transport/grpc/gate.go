// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/session"
)

// The gate stands before the gRPC server: it accepts a connection, or closes it when
// its IP address has too many. An accepted connection (gated) then counts as pending
// until its handshake completes ([gated.admitted]), as open until it closes
// ([gated.gone]), and in between its reads are bounded as long as its peer may send no
// large messages.

// gate is a listener that bounds how many connections of one IP address may be
// pending, their handshakes not complete, and how many may be open. Connections above
// the bounds are closed before a byte is read from them.
type gate struct {
	net.Listener

	limit    int // Pending connections of one IP address.
	most     int // Open connections of one IP address.
	endpoint *session.Endpoint

	mu      sync.Mutex
	pending map[string]int
	open    map[string]int
	lanes   map[*gated]struct{} // Connections that gRPC has given away, until they are closed.
}

func newGate(l net.Listener, cfg transport.Config, e *session.Endpoint) *gate {
	return &gate{
		Listener: l, limit: cfg.PendingConnections, most: cfg.HostConnections, endpoint: e,
		pending: make(map[string]int), open: make(map[string]int), lanes: make(map[*gated]struct{}),
	}
}

// closeLanes closes the connections that gRPC has given away and knows nothing of.
func (g *gate) closeLanes() {
	g.mu.Lock()
	lanes := slices.Collect(maps.Keys(g.lanes))
	g.mu.Unlock()
	for _, c := range lanes {
		_ = c.Close()
	}
}

func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				g.endpoint.NotAccepted(err) // The server tries again soon.
			}
			return nil, err
		}
		host := hostOf(c.RemoteAddr())
		full := g.enter(host)
		if full == "" {
			return &gated{Conn: c, gate: g, host: host}, nil
		}
		_ = c.Close()
		g.endpoint.Refuse(c.RemoteAddr().String(), gossip.NodeID{}, &transport.RefusedError{
			Reason: transport.ReasonConnections, Detail: full,
		}, true)
	}
}

// enter counts a new connection as pending, or says why there is no room for it.
func (g *gate) enter(host string) (full string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.pending[host] >= g.limit:
		return fmt.Sprintf("%s has %d unfinished connections: raise transport.pending-connections if many nodes share the address", host, g.limit)
	case g.open[host] >= g.most:
		return fmt.Sprintf("%s has %d open connections: raise transport.host-connections if many nodes share the address", host, g.most)
	}
	g.pending[host]++
	return ""
}

// count adds to the numbers of pending and of open connections of a host.
func (g *gate) count(host string, pending, open int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pending[host] += pending; g.pending[host] == 0 {
		delete(g.pending, host)
	}
	if g.open[host] += open; g.open[host] == 0 {
		delete(g.open, host)
	}
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// gated is an accepted connection.
type gated struct {
	net.Conn

	gate *gate
	host string

	mu     sync.Mutex // Guards isOpen and closed, by which the gate has counted the connection.
	isOpen bool       // The handshake is complete: the connection counts as open.
	closed bool

	// unasked is how many bytes came since the receiver last asked for a message. Flow
	// control alone bounds them only until the first bytes of a message announce a
	// large one.
	unasked  atomic.Int64
	large    atomic.Pointer[func() bool] // Whether the peer may send large messages.
	exceeded atomic.Bool

	grace atomic.Pointer[time.Timer] // Closes the connection when closeGrace is over.
}

// allowance is how many bytes a peer that may send no large messages can send before
// the receiver asks for the next message: as many as flow control lets through, which
// may be many small messages, and one message with the frames around it.
const allowance = windowBytes + transport.StrangerFrameBytes + 64<<10

// errAllowance ends a connection whose peer sends more than it may.
var errAllowance = errors.New("grpc: more bytes than a stranger may send")

// expect begins a new allowance: the receiver waits for a message. The function large
// reports whether the peer may send a large one.
func (c *gated) expect(large func() bool) {
	if large != nil {
		c.large.Store(&large)
	}
	c.unasked.Store(0)
}

// Read reads from the connection, and fails for good when a peer that may send no
// large messages has sent more than its allowance.
func (c *gated) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.unasked.Add(int64(n)) <= allowance {
		return n, err
	}
	if large := c.large.Load(); large != nil && (*large)() {
		c.unasked.Store(0)
		return n, err
	}
	c.exceeded.Store(true)
	return 0, errors.Join(errAllowance, c.Close())
}

// admitted counts the connection as open: its handshake is complete.
func (c *gated) admitted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isOpen && !c.closed {
		c.isOpen = true
		c.gate.count(c.host, -1, 1)
	}
}

// gone takes the connection out of the gate's counts.
func (c *gated) gone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
	case c.isOpen:
		c.gate.count(c.host, 0, -1)
	default:
		c.gate.count(c.host, -1, 0)
	}
	c.closed = true
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	delete(c.gate.lanes, c)
}

// giveAway takes the connection from gRPC for a lane. What such a peer may send is bounded
// by the lengths of its messages.
func (c *gated) giveAway() {
	always := func() bool { return true }
	c.expect(always)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.gate.mu.Lock()
		defer c.gate.mu.Unlock()
		c.gate.lanes[c] = struct{}{}
	}
}

// closeLane closes the connection of a lane: at once when the other end is gone, else so
// that it hears at once that no more will come, and can read what came before.
func (c *gated) closeLane(gone bool) {
	if gone {
		_ = c.Close()
		return
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	c.closeSoon()
}

// closeSoon closes the connection after closeGrace, in which the other end can read
// the last message and close it. The function in large, and what it refers to, is let
// go at once.
func (c *gated) closeSoon() {
	c.large.Store(nil)
	c.grace.Store(time.AfterFunc(closeGrace, func() { _ = c.Close() })) // Ends at once; nobody needs to wait.
}

func (c *gated) Close() error {
	c.gone()
	c.large.Store(nil)
	if timer := c.grace.Load(); timer != nil {
		timer.Stop()
	}
	return c.Conn.Close()
}

// RemoteAddr carries the connection itself through TLS and gRPC to the stream.
func (c *gated) RemoteAddr() net.Addr { return gatedAddr{c.Conn.RemoteAddr(), c} }

type gatedAddr struct {
	net.Addr

	conn *gated
}
