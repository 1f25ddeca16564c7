// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/management"
)

// The server in virtual time, on connections in memory (pipes). First come connections that
// are idle or send too much, and Close.

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
