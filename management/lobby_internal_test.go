// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"bytes"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// straggler is a listener that has accepted one more connection at the moment at which it is
// closed.
type straggler struct {
	conn   net.Conn
	closed chan struct{}
	given  bool
}

func (s *straggler) Accept() (net.Conn, error) {
	<-s.closed
	if s.given {
		return nil, net.ErrClosed
	}
	s.given = true
	return s.conn, nil
}

func (s *straggler) Close() error {
	close(s.closed)
	return nil
}

func (s *straggler) Addr() net.Addr { return &net.TCPAddr{} }

// Close waits for nobody who comes while the listener closes and says nothing.
func TestALobbyThatClosesWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		b := newLobby(&straggler{conn: far, closed: make(chan struct{})}, 1, slog.New(slog.DiscardHandler))
		began := time.Now()
		require.NoError(t, b.Close())
		require.Zero(t, time.Since(began))
		_, err := near.Read(make([]byte, 1))
		require.Error(t, err, "the connection is closed")
	})
}

// A connection whose request nobody can read is closed after a while, and the log says so.
func TestALobbyTellsOfRequestsThatFindNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		var logged bytes.Buffer
		b := newLobby(&eager{&straggler{conn: far, closed: make(chan struct{})}}, 1, slog.New(slog.NewTextHandler(&logged, nil)))
		_, err := near.Write([]byte("G"))
		require.NoError(t, err)
		_, err = near.Read(make([]byte, 1))
		require.Error(t, err, "the connection is closed")
		require.NoError(t, b.Close())
		require.Contains(t, logged.String(), "were not read")
	})
}

// eager is a listener that gives its connection at once.
type eager struct{ *straggler }

func (e *eager) Accept() (net.Conn, error) {
	if !e.given {
		e.given = true
		return e.conn, nil
	}
	return e.straggler.Accept()
}
