// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"net"
	"sync"
)

// limited accepts a connection only when fewer than a number of others are
// open.
type limited struct {
	net.Listener

	places  chan struct{}
	closed  chan struct{}
	closing sync.Once
}

// limit bounds the open connections of a listener.
func limit(l net.Listener, connections int) *limited {
	return &limited{Listener: l, places: make(chan struct{}, connections), closed: make(chan struct{})}
}

// Accept waits for a place, then for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &counted{Conn: conn, release: sync.OnceFunc(func() { <-l.places })}, nil
}

// Close ends the waiting, too.
func (l *limited) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// counted is a connection that has a place.
type counted struct {
	net.Conn

	release func()
}

// Close gives the place back.
func (c *counted) Close() error {
	defer c.release()
	return c.Conn.Close()
}
