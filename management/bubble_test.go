// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/management"
)

// The server in virtual time, on connections in memory (pipes). First come connections that
// are idle or send too much, and Close; then the listener with a bounded number of
// connections, of which one gives way to the next.

func bufioReader(text string) *bufio.Reader { return bufio.NewReader(strings.NewReader(text)) }

// pipes is a listener of connections in memory, for bubbles of virtual time.
type pipes struct {
	offered chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func newPipes() *pipes { return &pipes{offered: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.offered:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// dial returns the client's end of a new connection.
func (p *pipes) dial() net.Conn {
	near, far := net.Pipe()
	p.offered <- far
	return near
}

// get sends a request on a connection, and returns the response.
func get(t *testing.T, c net.Conn, path string) *http.Response {
	t.Helper()
	_, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response
}

// A connection on which no request comes, or half of one, or no further one, is closed.
func TestIdleConnectionsEnd(t *testing.T) {
	for name, test := range map[string]struct {
		say   func(t *testing.T, c net.Conn)
		after time.Duration
	}{
		"no request":         {func(*testing.T, net.Conn) {}, time.Second},
		"half a request":     {func(t *testing.T, c net.Conn) { t.Helper(); write(t, c, "GET / HTTP/1.1\r\nHost: loc") }, time.Second},
		"no further request": {func(t *testing.T, c net.Conn) { t.Helper(); get(t, c, "/echo/a") }, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPipes()
				s, err := management.ServeOn(p, management.Default(), []management.Route{echo()}, quiet())
				require.NoError(t, err)
				c := p.dial()
				test.say(t, c)
				began := time.Now()
				_, _ = io.Copy(io.Discard, c) // Until the server closes the connection.
				require.InDelta(t, test.after.Seconds(), time.Since(began).Seconds(), 0.6)
				require.NoError(t, s.Close())
			})
		})
	}
}

// The head of a request is read up to a bound.
func TestHeadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		s, err := management.ServeOn(p, management.Default(), []management.Route{echo()}, quiet())
		require.NoError(t, err)
		c := p.dial()
		go func() {
			_, _ = io.WriteString(c, "GET /echo/"+strings.Repeat("a", 1<<20)) // Until the server closes the connection.
		}()
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, response.StatusCode)
		require.NoError(t, c.Close())
		require.NoError(t, s.Close())
	})
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

// Close ends an answer that heeds its context. It returns although another answer does not,
// and names that answer in its error.
func TestCloseHasAnEnd(t *testing.T) {
	for name, heeds := range map[string]bool{"heeds its context": true, "ignores its context": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPipes()
				cfg := management.Default()
				cfg.RequestTimeout = 10 * time.Minute
				begun, release := make(chan struct{}), make(chan struct{})
				s, err := management.ServeOn(p, cfg, []management.Route{fail("/held", func(ctx context.Context) (any, error) {
					close(begun)
					if heeds {
						<-ctx.Done()
					} else {
						<-release
					}
					return nil, context.Cause(ctx)
				})}, quiet())
				require.NoError(t, err)
				c := p.dial()
				write(t, c, "GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n")
				<-begun
				began := time.Now()
				err = s.Close()
				if heeds {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, "has not ended")
				}
				require.LessOrEqual(t, time.Since(began), 2*time.Second)
				close(release)
			})
		})
	}
}

// named is a connection that comes from a host.
type named struct {
	net.Conn

	host string
}

func (n named) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(n.host), Port: 1} }

// crowd is a bounded listener, with the pipes by which connections come to it and its log.
type crowd struct {
	pipes *pipes
	l     net.Listener
	log   *lines
}

func newCrowd(t *testing.T, connections int) crowd {
	t.Helper()
	p, text := newPipes(), new(lines)
	l := management.Bound(p, connections, slog.New(slog.NewTextHandler(text, nil)))
	t.Cleanup(func() { _ = l.Close() }) // The test may have closed the listener.
	return crowd{p, l, text}
}

// accept connects a client from a host, a second after the client before.
func (c crowd) accept(t *testing.T, host string) (client, server net.Conn) {
	t.Helper()
	<-time.After(time.Second)
	client, far := net.Pipe()
	go func() { c.pipes.offered <- named{far, host} }()
	server, err := c.l.Accept()
	require.NoError(t, err)
	return client, server
}

// isOpen reports whether the other end has not closed a connection. The millisecond for
// which it waits is enough in virtual time alone.
func isOpen(c net.Conn) bool {
	ended := make(chan error, 1)
	go func() {
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond)) // A pipe takes any deadline.
		_, err := c.Read(make([]byte, 1))
		ended <- err
	}()
	return errors.Is(<-ended, os.ErrDeadlineExceeded)
}

// A new connection always gets a place: of the host with the most connections, the
// connection that has waited longest for a request gives way. A busy connection stays.
func TestTheLongestIdleConnectionGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 4)
		busy, server := c.accept(t, "10.0.0.1")
		ended := management.Begin(server)
		first, _ := c.accept(t, "10.0.0.1")
		other, _ := c.accept(t, "10.0.0.2")
		second, _ := c.accept(t, "10.0.0.1")
		_, _ = c.accept(t, "10.0.0.3")
		require.False(t, isOpen(first))
		_, _ = c.accept(t, "10.0.0.4")
		require.False(t, isOpen(second))
		require.True(t, isOpen(busy), "its request is being answered")
		require.True(t, isOpen(other), "its host has no more than others")

		ended() // The busy connection waits now, and has waited for a shorter time than the others.
		_, _ = c.accept(t, "10.0.0.5")
		require.False(t, isOpen(other))
		require.True(t, isOpen(busy))
		require.Equal(t, 1, strings.Count(c.log.String(), "all places are taken"), c.log)
		<-time.After(time.Minute)
		_, _ = c.accept(t, "10.0.0.6")
		require.Contains(t, c.log.String(), "closed=3", "since the line before")
	})
}

// A new connection has a moment to send its request, before it gives way to the next one.
func TestANewcomerIsNotClosedForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		first, _ := c.accept(t, "10.0.0.1")
		began := time.Now()
		go c.pipes.dial()
		_, err := c.l.Accept()
		require.NoError(t, err)
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		require.False(t, isOpen(first))
	})
}

// While all requests are being answered the next connection waits, until one of them
// has been or the listener is closed.
func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		_, server := c.accept(t, "10.0.0.1")
		ended := management.Begin(server)
		go c.pipes.dial()
		accepted := make(chan error)
		go func() {
			second, err := c.l.Accept()
			if err == nil {
				management.Begin(second)
			}
			accepted <- err
			_, err = c.l.Accept()
			accepted <- err
		}()
		synctest.Wait()
		select {
		case err := <-accepted:
			require.Fail(t, "one too many", "%v", err)
		default:
		}
		ended()
		require.NoError(t, <-accepted)
		require.NoError(t, server.Close(), "its place is not given back again")
		go c.pipes.dial()
		synctest.Wait() // The third connection waits for the second.
		require.NoError(t, c.l.Close())
		require.ErrorIs(t, <-accepted, net.ErrClosed)
	})
}
