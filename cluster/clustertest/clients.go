// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"

	"google.golang.org/grpc/test/bufconn"
)

// Clients that are no members, see package client: gateways listen in memory, since time stands still in a bubble that
// waits for a socket.

// clientBuffer is how many bytes are under way in each direction of a connection of a client.
const clientBuffer = 64 << 10

// DialClient connects a client to the gateway of a node that has gateway.address in its configuration. Give it to
// client.WithDial. What the network between nodes does, [Cluster.Cut] for one, does not concern clients.
func (c *Cluster) DialClient(ctx context.Context, address string) (net.Conn, error) {
	return c.listeners.dial(ctx, address)
}

// listeners are the listeners of the gateways of a cluster, by address.
type listeners struct {
	mu   sync.Mutex
	open map[string]*listener
	last int // Numbers the ports of clients.
}

func newListeners() *listeners { return &listeners{open: map[string]*listener{}} }

// listener is the listener of a gateway.
type listener struct {
	*bufconn.Listener

	of      *listeners
	address string
}

// memoryAddr is the address "host:port" of one end of a connection in memory.
type memoryAddr string

func (memoryAddr) Network() string  { return "memory" }
func (b memoryAddr) String() string { return string(b) }

// listen listens on an address.
func (d *listeners) listen(_ context.Context, address string) (net.Listener, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[address] != nil {
		return nil, syscall.EADDRINUSE
	}
	l := &listener{bufconn.Listen(clientBuffer), d, address}
	d.open[address] = l
	return l, nil
}

// Accept returns the next connection.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, net.ErrClosed
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.of.last++
	return clientConn{conn, memoryAddr(l.address), memoryAddr(fmt.Sprintf("10.1.0.1:%d", 1024+l.of.last%60_000))}, nil
}

// Addr returns the address.
func (l *listener) Addr() net.Addr { return memoryAddr(l.address) }

// Close closes the listener, and frees its address.
func (l *listener) Close() error {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.of.open[l.address] == l {
		delete(l.of.open, l.address)
	}
	return l.Listener.Close()
}

// clientConn is one end of the connection of a client, with the addresses of both ends.
type clientConn struct {
	net.Conn

	local, remote net.Addr
}

func (c clientConn) LocalAddr() net.Addr  { return c.local }
func (c clientConn) RemoteAddr() net.Addr { return c.remote }

// dial connects to an address.
func (d *listeners) dial(ctx context.Context, address string) (net.Conn, error) {
	d.mu.Lock()
	l := d.open[address]
	d.mu.Unlock()
	if l == nil {
		return nil, syscall.ECONNREFUSED
	}
	conn, err := l.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	return clientConn{conn, memoryAddr("10.1.0.1:1024"), memoryAddr(address)}, nil
}
