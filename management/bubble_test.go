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

// dial connects.
func (p *pipes) dial() net.Conn {
	near, far := net.Pipe()
	p.offered <- far
	return near
}

// get asks on a connection.
func get(t *testing.T, c net.Conn, path string) *http.Response {
	t.Helper()
	_, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response
}

// A connection that says nothing, or no whole request, or nothing more, does
// not stay.
func TestIdleConnectionsEnd(t *testing.T) {
	for name, test := range map[string]struct {
		say   func(t *testing.T, c net.Conn)
		after time.Duration
	}{
		"nothing":       {func(*testing.T, net.Conn) {}, 5 * time.Second},
		"half a header": {func(t *testing.T, c net.Conn) { t.Helper(); write(t, c, "GET / HTTP/1.1\r\nHost: loc") }, 5 * time.Second},
		"no more":       {func(t *testing.T, c net.Conn) { t.Helper(); get(t, c, "/echo/a") }, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPipes()
				s, err := management.ServeOn(p, management.Default(), []management.Route{echo()}, quiet())
				require.NoError(t, err)
				c := p.dial()
				test.say(t, c)
				began := time.Now()
				_, _ = io.Copy(io.Discard, c) // Until the server closes it.
				require.InDelta(t, test.after.Seconds(), time.Since(began).Seconds(), 1.5)
				require.NoError(t, s.Close())
			})
		})
	}
}

// A head without end is not read to its end.
func TestHeadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		s, err := management.ServeOn(p, management.Default(), []management.Route{echo()}, quiet())
		require.NoError(t, err)
		c := p.dial()
		go func() {
			_, _ = io.WriteString(c, "GET /echo/"+strings.Repeat("a", 1<<20)) // Until the server closes it.
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

// An answer that heeds its context ends with Close; one that does not is named
// by the error of Close, which returns all the same.
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

// No more connections than configured are open; the next one is served when
// one of them has ended.
func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		l := management.Limit(p, 1)
		defer func() { require.NoError(t, l.Close()) }()
		go p.dial()
		first, err := l.Accept()
		require.NoError(t, err)
		accepted := make(chan error)
		go func() {
			second, err := l.Accept()
			if err == nil {
				err = second.Close()
			}
			accepted <- err
			_, err = l.Accept()
			accepted <- err
		}()
		go p.dial()
		synctest.Wait()
		select {
		case err := <-accepted:
			require.Fail(t, "one too many", "%v", err)
		default:
		}
		require.NoError(t, first.Close())
		require.NoError(t, first.Close(), "its place is given back once")
		require.NoError(t, <-accepted)
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-accepted, net.ErrClosed)
	})
	synctest.Test(t, func(t *testing.T) { // While no place is free.
		p := newPipes()
		l := management.Limit(p, 1)
		go p.dial()
		_, err := l.Accept()
		require.NoError(t, err)
		accepted := make(chan error)
		go func() {
			_, err := l.Accept()
			accepted <- err
		}()
		synctest.Wait()
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-accepted, net.ErrClosed)
	})
}
