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
// client.WithDial. What the network between nodes does, [Cluster.Cut] for one, is nothing to clients.
func (c *Cluster) DialClient(ctx context.Context, address string) (net.Conn, error) {
	return c.doors.dial(ctx, address)
}

// doors are the listeners of gateways, by address.
type doors struct {
	mu   sync.Mutex
	open map[string]*door
	last int // Numbers the ports of clients.
}

func newDoors() *doors { return &doors{open: map[string]*door{}} }

// door is the listener of a gateway.
type door struct {
	*bufconn.Listener

	of      *doors
	address string
}

// bound is an address "host:port".
type bound string

func (bound) Network() string  { return "memory" }
func (b bound) String() string { return string(b) }

// listen listens on an address.
func (d *doors) listen(_ context.Context, address string) (net.Listener, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[address] != nil {
		return nil, syscall.EADDRINUSE
	}
	l := &door{bufconn.Listen(clientBuffer), d, address}
	d.open[address] = l
	return l, nil
}

// Accept returns the next connection.
func (l *door) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, net.ErrClosed
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.of.last++
	return ended{conn, bound(l.address), bound(fmt.Sprintf("10.1.0.1:%d", 1024+l.of.last%60_000))}, nil
}

// Addr returns the address.
func (l *door) Addr() net.Addr { return bound(l.address) }

// Close ends the listening.
func (l *door) Close() error {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.of.open[l.address] == l {
		delete(l.of.open, l.address)
	}
	return l.Listener.Close()
}

// ended is an end of a connection.
type ended struct {
	net.Conn

	local, remote net.Addr
}

func (c ended) LocalAddr() net.Addr  { return c.local }
func (c ended) RemoteAddr() net.Addr { return c.remote }

// dial connects to an address.
func (d *doors) dial(ctx context.Context, address string) (net.Conn, error) {
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
	return ended{conn, bound("10.1.0.1:1024"), bound(address)}, nil
}
