// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"container/list"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// A lobby accepts ([lobby.admit]), waits for the first byte of each connection ([lobby.wait]),
// and hands out those that have sent one ([lobby.Accept]). So a connection that says nothing
// costs a small goroutine and a descriptor for a second, and none of the places in which
// requests are read.

const (
	// lobbyMost is how many connections wait for their first byte, where descriptors allow it.
	// One that comes on top sends the oldest away.
	lobbyMost = 8192
	// lobbyShare is the part of all descriptors of the process that may wait so at one listener: a quarter.
	lobbyShare = 4
	// acceptPause is how long accepting rests after an error, when nobody can be sent away.
	acceptPause = 10 * time.Millisecond
)

// lobby is a listener whose connections have sent something.
type lobby struct {
	net.Listener

	most int
	log  *slog.Logger

	ready   chan net.Conn
	closed  chan struct{} // Closed when the lobby is closed.
	closing sync.Once
	running sync.WaitGroup

	sent, failed, late seldom // Connections that were sent away, could not be accepted, found no place.

	mu      sync.Mutex // Guards what follows.
	waiting list.List  // Of net.Conn, the oldest first.
}

// newLobby begins to accept.
func newLobby(l net.Listener, most int, log *slog.Logger) *lobby {
	b := &lobby{Listener: l, most: most, log: log, ready: make(chan net.Conn), closed: make(chan struct{})}
	// Owned by the lobby: ends with the listener, and Close waits for it.
	b.running.Go(b.admit)
	return b
}

// Accept returns the next connection that has sent something.
func (b *lobby) Accept() (net.Conn, error) {
	select {
	case conn := <-b.ready:
		return conn, nil
	case <-b.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener and all connections that wait.
func (b *lobby) Close() error {
	err := net.ErrClosed
	b.closing.Do(func() {
		close(b.closed)
		err = b.Listener.Close()
		for b.sendAway() {
		}
		b.running.Wait()
	})
	return err
}

// admit accepts until the listener is closed.
func (b *lobby) admit() {
	for {
		conn, err := b.Listener.Accept()
		switch {
		case err == nil:
			b.enter(conn)
		case errors.Is(err, net.ErrClosed):
			return
		case b.sendAway(): // Descriptors have run out, most likely: one is free now.
			b.tell(&b.sent, tooMany)
		default:
			b.tell(&b.failed, "management cannot accept connections: "+err.Error())
			select {
			case <-time.After(acceptPause):
			case <-b.closed:
			}
		}
	}
}

// enter lets a connection wait for its first byte. If too many wait, the oldest goes.
func (b *lobby) enter(conn net.Conn) {
	b.mu.Lock()
	if b.isClosed() { // Close has sent away whoever waited before.
		b.mu.Unlock()
		_ = conn.Close()
		return
	}
	at := b.waiting.PushBack(conn)
	crowded := b.waiting.Len() > b.most
	b.mu.Unlock()
	if crowded && b.sendAway() {
		b.tell(&b.sent, tooMany)
	}
	// Owned by the lobby: ends with the first byte, after headTimeout, or when the connection
	// is sent away.
	b.running.Go(func() { b.wait(at, conn) })
}

func (b *lobby) isClosed() bool {
	select {
	case <-b.closed:
		return true
	default:
		return false
	}
}

// wait hands a connection out when it has sent a byte.
func (b *lobby) wait(at *list.Element, conn net.Conn) {
	var first [1]byte
	err := conn.SetReadDeadline(time.Now().Add(headTimeout))
	if err == nil {
		_, err = conn.Read(first[:])
	}
	b.mu.Lock()
	b.waiting.Remove(at) // It may have been sent away already.
	b.mu.Unlock()
	if err == nil {
		err = conn.SetReadDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close()
		return
	}
	select {
	case b.ready <- &spoken{Conn: conn, first: first[:]}:
	case <-b.closed:
		_ = conn.Close()
	case <-time.After(headTimeout): // All places for requests are taken for long.
		_ = conn.Close()
		b.tell(&b.late, "management closed connections whose requests were not read, because all places have been taken for too long")
	}
}

// sendAway closes the connection that has waited longest, and reports whether there was one.
func (b *lobby) sendAway() bool {
	b.mu.Lock()
	oldest := b.waiting.Front()
	if oldest == nil {
		b.mu.Unlock()
		return false
	}
	b.waiting.Remove(oldest)
	b.mu.Unlock()
	_ = oldest.Value.(net.Conn).Close() // Its client sent nothing.
	return true
}

// tooMany says why connections were sent away.
const tooMany = "management closed connections on which nothing came, because there were too many"

// tell counts what has happened to a connection, and says so in the log once in a while.
func (b *lobby) tell(of *seldom, text string) {
	if n := of.again(crowdedEvery); n > 0 {
		b.log.Warn(text, "connections", n)
	}
}

// spoken is a connection of which the first byte has been read.
type spoken struct {
	net.Conn

	first []byte
}

func (c *spoken) Read(p []byte) (int, error) {
	if len(c.first) == 0 || len(p) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.first)
	c.first = c.first[n:]
	return n, nil
}
