// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"fmt"
	"net"
	"sync"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/transport"
	"github.com/quorate/quorate/membership/transport/internal/session"
)

// gate is a listener that bounds how many connections of one IP address may be
// unfinished. What is above is closed before a byte is read from it.
type gate struct {
	net.Listener

	limit    int
	endpoint *session.Endpoint

	mu      sync.Mutex
	pending map[string]int
}

func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host := hostOf(c.RemoteAddr())
		if g.enter(host) {
			return &gated{Conn: c, gate: g, host: host}, nil
		}
		_ = c.Close()
		g.endpoint.Refuse(c.RemoteAddr().String(), gossip.NodeID{}, &transport.RefusedError{
			Reason: transport.ReasonConnections,
			Detail: fmt.Sprintf("%s has %d unfinished connections: raise transport.pending-connections if many nodes share the address", host, g.limit),
		}, true)
	}
}

func (g *gate) enter(host string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pending[host] >= g.limit {
		return false
	}
	g.pending[host]++
	return true
}

func (g *gate) leave(host string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pending[host]--; g.pending[host] == 0 {
		delete(g.pending, host)
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
	once sync.Once
}

// admitted says that the handshake is complete.
func (c *gated) admitted() { c.once.Do(func() { c.gate.leave(c.host) }) }

func (c *gated) Close() error {
	c.admitted()
	return c.Conn.Close()
}

// RemoteAddr carries the connection itself through TLS and gRPC to the stream.
func (c *gated) RemoteAddr() net.Addr { return gatedAddr{c.Conn.RemoteAddr(), c} }

type gatedAddr struct {
	net.Addr

	conn *gated
}
