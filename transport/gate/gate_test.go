// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/transport/gate"
)

// Which connections keep their places: connections come by pipes, in virtual time, a second apart.

// pipes is a listener whose connections a test offers.
type pipes struct {
	offered chan net.Conn
	errs    chan error
	closed  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case err := <-p.errs: // Errors that are there come first.
		return nil, err
	default:
	}
	select {
	case c := <-p.offered:
		return c, nil
	case err := <-p.errs:
		return nil, err
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// named is a connection from a host.
type named struct {
	net.Conn

	host string
}

func (n named) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(n.host), Port: 1} }

// door is a gate, and what it has said.
type door struct {
	*gate.Gate

	t      *testing.T
	pipes  *pipes
	closed []gate.Reason
	failed int
}

func open(t *testing.T, cfg gate.Config) *door {
	t.Helper()
	d := &door{t: t, pipes: &pipes{make(chan net.Conn), make(chan error), make(chan struct{})}}
	cfg.Closed = func(_ net.Addr, why gate.Reason) { d.closed = append(d.closed, why) }
	cfg.Failed = func(error) { d.failed++ }
	if cfg.Bytes == 0 {
		cfg.Bytes = gate.PendingBytes
	}
	if cfg.AllBytes == 0 {
		cfg.AllBytes = gate.AllPendingBytes
	}
	d.Gate = gate.New(d.pipes, cfg)
	return d
}

// accept connects a client from a host.
func (d *door) accept(host string) (client net.Conn, server *gate.Conn) {
	d.t.Helper()
	<-time.After(time.Second)
	client, far := net.Pipe()
	go func() { d.pipes.offered <- named{far, host} }()
	c, err := d.Accept()
	require.NoError(d.t, err)
	return client, gate.Of(c.RemoteAddr())
}

// isOpen reports whether the other end has not closed a connection. The millisecond for which it waits is
// enough in virtual time alone.
func isOpen(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond)) // A pipe takes any deadline.
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

func requireOpen(t *testing.T, want string, clients ...net.Conn) {
	t.Helper()
	got := ""
	for _, c := range clients {
		got += map[bool]string{true: "o", false: "x"}[isOpen(c)]
	}
	require.Equal(t, want, got)
}

// A new connection always gets a place: the oldest of the host with most gives way, whatever came on it. An admitted
// one stays, until it rests.
func TestTheOldestOfTheHostWithMostGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, gate.Config{Pending: 3, HostPending: 3})
		known, server := d.accept("10.0.0.1")
		require.True(t, server.Admit())
		first, spoken := d.accept("10.0.0.1")
		go func() { _, _ = first.Write([]byte{0x16}) }()
		_, err := spoken.Read(make([]byte, 1))
		require.NoError(t, err)
		other, _ := d.accept("10.0.0.2")
		second, _ := d.accept("10.0.0.1")
		requireOpen(t, "oooo", known, first, other, second)
		third, _ := d.accept("10.0.0.3")
		requireOpen(t, "oxooo", known, first, other, second, third)
		fourth, _ := d.accept("10.0.0.4") // All hosts have one: the oldest of all.
		requireOpen(t, "oxooo", known, other, second, third, fourth)

		server.Rest() // It is the newest of those that wait.
		requireOpen(t, "oxoo", known, second, third, fourth)
		pending, admitted := d.Open()
		require.Equal(t, []int{3, 0}, []int{pending, admitted})
		require.Equal(t, []gate.Reason{gate.GaveWay, gate.GaveWay, gate.GaveWay}, d.closed)
		require.NoError(t, server.Close())
		require.NoError(t, server.Close(), "its place is given back once")
		require.False(t, server.Admit())
		server.Rest()
		pending, admitted = d.Open()
		require.Equal(t, []int{2, 0}, []int{pending, admitted})
	})
}

// One host has a number of places of its own.
func TestHostsHavePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, gate.Config{Pending: 8, HostPending: 2, HostAdmitted: 2, Admitted: 3})
		first, _ := d.accept("10.0.0.1")
		second, one := d.accept("10.0.0.1")
		third, two := d.accept("10.0.0.1")
		requireOpen(t, "xoo", first, second, third)
		fourth, three := d.accept("10.0.0.2")
		require.True(t, one.Admit())
		require.True(t, three.Admit())
		fifth, four := d.accept("10.0.0.1")
		require.True(t, two.Admit())
		require.True(t, two.Admit(), "again")
		require.False(t, four.Admit(), "the host has as many as it may")
		requireOpen(t, "ooox", second, third, fourth, fifth)

		// There is no place for anybody any more, and the newcomer is closed before it is handed out.
		late, far := net.Pipe()
		go func() { d.pipes.offered <- named{far, "10.0.0.3"} }()
		accepted := make(chan error)
		go func() {
			_, err := d.Accept()
			accepted <- err
		}()
		synctest.Wait()
		requireOpen(t, "x", late)
		require.NoError(t, d.Close())
		require.ErrorIs(t, <-accepted, net.ErrClosed)
		require.Equal(t, []gate.Reason{gate.GaveWay, gate.FullHost, gate.Full}, d.closed)
	})
}

// Few bytes are read of who is not admitted, and any number afterwards.
func TestStrangersSayLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, gate.Config{Pending: 8, HostPending: 8, Bytes: 4})
		client, server := d.accept("10.0.0.1")
		go func() { _, _ = client.Write(make([]byte, 5)) }()
		_, err := io.ReadFull(server, make([]byte, 5))
		require.ErrorIs(t, err, gate.ErrTooManyBytes)
		requireOpen(t, "x", client)
		_, err = server.Read(make([]byte, 1))
		require.Error(t, err)
		require.Equal(t, []gate.Reason{gate.TooManyBytes}, d.closed, "it is told once")

		client, server = d.accept("10.0.0.1")
		say := func(n int) error {
			go func() { _, _ = client.Write(make([]byte, n)) }()
			_, err := io.ReadFull(server, make([]byte, n))
			return err
		}
		require.NoError(t, say(3))
		require.True(t, server.Admit())
		require.NoError(t, say(5))
		server.Rest()
		require.NoError(t, say(3), "it is counted anew")
		require.ErrorIs(t, say(2), gate.ErrTooManyBytes)
	})
}

// Who runs out of descriptors closes who would give way, and accepts again.
func TestDescriptorsAreFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, gate.Config{Pending: 8, HostPending: 8})
		weak, _ := d.accept("10.0.0.1")
		known, server := d.accept("10.0.0.1")
		require.True(t, server.Admit())
		go func() {
			d.pipes.errs <- errors.New("too many open files")
			d.pipes.errs <- errors.New("too many open files")
		}()
		_, _ = d.accept("10.0.0.2")
		require.Equal(t, 2, d.failed)
		requireOpen(t, "xo", weak, known)

		go func() { d.pipes.errs <- errors.New("too many open files") }()
		ended := make(chan error)
		go func() {
			_, err := d.Accept()
			ended <- err
		}()
		synctest.Wait()
		require.NoError(t, d.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed)
	})
}

// An address of another kind has no connection.
func TestAddressesOfOthers(t *testing.T) {
	require.Nil(t, gate.Of(&net.TCPAddr{}))
	require.Equal(t, "@", gate.HostOf(&net.UnixAddr{Name: "@"}))
}

// What comes on all pending connections is bounded: the one on which most has come gives way, and who is admitted, or
// gone, counts no more.
func TestTheHeaviestGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, gate.Config{Pending: 8, HostPending: 8, Bytes: 8, AllBytes: 10})
		say := func(client net.Conn, server *gate.Conn, n int) error {
			go func() { _, _ = client.Write(make([]byte, n)) }()
			_, err := io.ReadFull(server, make([]byte, n))
			return err
		}
		known, admitted := d.accept("10.0.0.1")
		require.NoError(t, say(known, admitted, 8))
		require.True(t, admitted.Admit())
		light, honest := d.accept("10.0.0.2")
		require.NoError(t, say(light, honest, 3))
		heavy, much := d.accept("10.0.0.1")
		require.NoError(t, say(heavy, much, 7))
		late, some := d.accept("10.0.0.1")
		require.NoError(t, say(late, some, 1))
		requireOpen(t, "ooxo", known, light, heavy, late)
		require.NoError(t, say(late, some, 6))
		last, none := d.accept("10.0.0.3")
		require.NoError(t, say(last, none, 0))
		require.ErrorIs(t, say(last, none, 8), gate.ErrTooManyBytes)
		requireOpen(t, "ooox", known, light, late, last)
		require.Equal(t, []gate.Reason{gate.GaveWay, gate.GaveWay}, d.closed)
		_ = late.Close()
		require.NoError(t, some.Close())
		require.NoError(t, say(light, honest, 5))
	})
}
