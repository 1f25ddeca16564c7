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
	"github.com/quorate/quorate/transport/gate"
	"github.com/quorate/quorate/transport/session"
)

// The gate (package gate) stands before the gRPC server. A connection is admitted when its handshake completes
// ([gatedConn.Admit]), and its reads are bounded as long as its peer may send no large messages.

// listener is the gate of a transport, and the connections that gRPC has given away.
type listener struct {
	*gate.Gate

	mu    sync.Mutex
	lanes map[*gatedConn]struct{} // Until they are closed.
}

// hosts is how many addresses may have as many pending connections as one may, at a time.
const hosts = 2

func newDoor(l net.Listener, cfg transport.Config, e *session.Endpoint) *listener {
	full := map[gate.Reason]string{
		gate.GaveWay:      fmt.Sprintf("too many connections whose handshakes are not complete, %%s has most: raise transport.pending-connections, which is %d, if many nodes share the address", cfg.PendingConnections),
		gate.FullHost:     fmt.Sprintf("%%s has %d open connections: raise transport.host-connections if many nodes share the address", cfg.HostConnections),
		gate.TooManyBytes: fmt.Sprintf("more than %d bytes by %%s before the handshake", gate.PendingBytes),
	}
	return &listener{lanes: make(map[*gatedConn]struct{}), Gate: gate.New(l, gate.Config{
		Pending: hosts * cfg.PendingConnections, HostPending: cfg.PendingConnections, HostAdmitted: cfg.HostConnections, Bytes: gate.PendingBytes,
		AllBytes: gate.AllPendingBytes,
		Closed: func(remote net.Addr, why gate.Reason) {
			reason := transport.ReasonConnections
			if why == gate.TooManyBytes {
				reason = transport.ReasonMalformed
			}
			e.Refuse(remote.String(), gossip.NodeID{}, &transport.RefusedError{Reason: reason, Detail: fmt.Sprintf(full[why], gate.HostOf(remote))}, true)
		},
		Failed: e.NotAccepted,
	})}
}

// Accept returns the next connection that has a place.
func (d *listener) Accept() (net.Conn, error) {
	c, err := d.Gate.Accept()
	if err != nil {
		return nil, err
	}
	return &gatedConn{Conn: gate.Of(c.RemoteAddr()), door: d}, nil
}

// closeLanes closes the connections that gRPC has given away and knows nothing of.
func (d *listener) closeLanes() {
	d.mu.Lock()
	lanes := slices.Collect(maps.Keys(d.lanes))
	d.mu.Unlock()
	for _, c := range lanes {
		_ = c.Close()
	}
}

// gatedConn is an accepted connection.
type gatedConn struct {
	*gate.Conn

	door *listener

	mu     sync.Mutex // Guards closed.
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
func (c *gatedConn) expect(large func() bool) {
	if large != nil {
		c.large.Store(&large)
	}
	c.unasked.Store(0)
}

// Read reads from the connection, and fails for good when a peer that may send no
// large messages has sent more than its allowance.
func (c *gatedConn) Read(b []byte) (int, error) {
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

// giveAway takes the connection from gRPC for a lane. What such a peer may send is bounded
// by the lengths of its messages.
func (c *gatedConn) giveAway() {
	always := func() bool { return true }
	c.expect(always)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.door.mu.Lock()
		defer c.door.mu.Unlock()
		c.door.lanes[c] = struct{}{}
	}
}

// closeLane closes the connection of a lane: at once when the other end is gone, else so
// that it hears at once that no more will come, and can read what came before.
func (c *gatedConn) closeLane(gone bool) {
	if gone {
		_ = c.Close()
		return
	}
	_ = c.CloseWrite()
	c.closeSoon()
}

// closeSoon closes the connection after closeGrace, in which the other end can read
// the last message and close it. The function in large, and what it refers to, is let
// go at once.
func (c *gatedConn) closeSoon() {
	c.large.Store(nil)
	c.grace.Store(time.AfterFunc(closeGrace, func() { _ = c.Close() })) // Ends at once; nobody needs to wait.
}

// Close closes the connection and frees its place.
func (c *gatedConn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.door.mu.Lock()
	delete(c.door.lanes, c)
	c.door.mu.Unlock()
	c.mu.Unlock()
	c.large.Store(nil)
	if timer := c.grace.Load(); timer != nil {
		timer.Stop()
	}
	return c.Conn.Close()
}

// RemoteAddr carries the connection itself through TLS and gRPC to the stream.
func (c *gatedConn) RemoteAddr() net.Addr { return gatedAddr{c.Conn.RemoteAddr(), c} }

type gatedAddr struct {
	net.Addr

	conn *gatedConn
}
