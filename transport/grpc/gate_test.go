// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/transport"
)

// halved is a connection that tells how it was ended.
type halved struct {
	net.Conn

	ends []string
}

func (c *halved) Read(b []byte) (int, error) { return len(b), nil }

func (c *halved) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 9} }

func (c *halved) CloseWrite() error {
	c.ends = append(c.ends, "one way")
	return nil
}

func (c *halved) Close() error {
	c.ends = append(c.ends, "both ways")
	return nil
}

// lone is a listener with one connection.
type lone struct {
	net.Listener

	conn net.Conn
}

func (l lone) Accept() (net.Conn, error) { return l.conn, nil }

// A connection that this node ends stays open one way for a moment: a reset, which unread
// bytes would cause, could overtake a refusal. When the other end is gone there is nobody
// to wait for. In either case its place is free when it is closed, and not before.
func TestAConnectionEndsOneWayFirst(t *testing.T) {
	for gone, want := range map[bool][]string{false: {"one way"}, true: {"both ways"}} {
		synctest.Test(t, func(t *testing.T) {
			conn := new(halved)
			d := newDoor(lone{conn: conn}, transport.Config{PendingConnections: 1, HostConnections: 1}, nil)
			accepted, err := d.Accept()
			require.NoError(t, err)
			c, ok := accepted.(*gatedConn)
			require.True(t, ok)
			require.True(t, c.Admit())
			c.giveAway()
			c.closeLane(gone)
			require.Equal(t, want, conn.ends)
			_, admitted := d.Open()
			require.Equal(t, gone, admitted == 0)
			<-time.After(closeGrace)
			synctest.Wait()
			require.Equal(t, "both ways", conn.ends[len(conn.ends)-1])
			_, admitted = d.Open()
			require.Zero(t, admitted)
			require.Empty(t, d.lanes)
		})
	}
}

// A peer that may send no large messages can send so many bytes before the receiver asks for the next message; one that
// may sends what it likes.
func TestStrangersHaveAnAllowance(t *testing.T) {
	conn := new(halved)
	d := newDoor(lone{conn: conn}, transport.Config{PendingConnections: 1, HostConnections: 1}, nil)
	accepted, err := d.Accept()
	require.NoError(t, err)
	c, ok := accepted.(*gatedConn)
	require.True(t, ok)
	require.True(t, c.Admit())
	read := func(n int) error {
		_, err := c.Read(make([]byte, n))
		return err
	}
	member := true
	c.expect(func() bool { return member })
	require.NoError(t, read(allowance+1))
	require.NoError(t, read(allowance+1))
	member = false
	require.NoError(t, read(allowance-allowance/2))
	c.expect(nil)
	require.NoError(t, read(allowance))
	require.ErrorIs(t, read(1), errAllowance)
	require.True(t, c.exceeded.Load())
	require.Equal(t, []string{"both ways"}, conn.ends)
}
