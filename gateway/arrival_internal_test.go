// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/transport/gate"
)

// What is counted of messages on their way, and which call gives way: connections are pipes from hosts of a test's
// choice.

// given is a listener that has connections from hosts.
type given struct {
	net.Listener

	conns chan net.Conn
}

func (g given) Accept() (net.Conn, error) { return <-g.conns, nil }

// hosted is a connection from a host.
type hosted struct {
	net.Conn

	host string
}

func (h hosted) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(h.host), Port: 1} }

// yard has connections whose calls are counted.
type yard struct {
	t     *testing.T
	of    *arrivals
	gate  *gate.Gate
	conns chan net.Conn
	why   []error // Of the calls that gave way, or were late.
}

// newYard bounds what arrives by 40, 80 and 100 KiB of a connection, a host and all.
func newYard(t *testing.T) *yard {
	t.Helper()
	y := &yard{t: t, conns: make(chan net.Conn, 1)}
	y.of = newArrivals(0, 0, func(why error) { y.why = append(y.why, why) })
	y.of.conn, y.of.host, y.of.all = 40<<10, 80<<10, 100<<10
	y.gate = gate.New(given{conns: y.conns}, gate.Config{Pending: 100, HostPending: 100, Bytes: 1 << 30, AllBytes: 1 << 30})
	return y
}

// connect returns a connection from a host, and its other end.
func (y *yard) connect(host string) (*frameConn, net.Conn) {
	y.t.Helper()
	client, far := net.Pipe()
	y.t.Cleanup(func() { _ = client.Close() })
	y.conns <- hosted{far, host}
	c, err := y.gate.Accept()
	require.NoError(y.t, err)
	return y.of.follow(c, gate.Of(c.RemoteAddr())), client
}

// call begins a call of which some KiB come, with what it counts by itself.
func (y *yard) call(f *frameConn, stream uint32, kib int, once bool) context.Context {
	f.stream = stream
	ctx := y.of.begin(y.t.Context(), f, once)
	y.of.add(f, stream, kib<<10-callBytes)
	return ctx
}

func requireEnded(t *testing.T, want string, calls ...context.Context) {
	t.Helper()
	got := ""
	for _, c := range calls {
		got += map[bool]string{true: "o", false: "x"}[c.Err() == nil]
	}
	require.Equal(t, want, got)
}

// Beyond the bound of a connection its largest call gives way, beyond that of a host the largest of its fullest
// connection, and beyond that of all the same of the fullest host.
func TestTheLargestCallGivesWay(t *testing.T) {
	y := newYard(t)
	first, _ := y.connect("10.0.0.1")
	small, large := y.call(first, 1, 10, true), y.call(first, 3, 24, true)
	y.of.add(first, 1, 4<<10)
	requireEnded(t, "oo", small, large)
	y.of.add(first, 1, 4<<10)
	requireEnded(t, "ox", small, large)
	require.Equal(t, 18<<10, y.of.held())
	require.ErrorIs(t, context.Cause(large), errCrowded)
	y.of.add(first, 3, 1<<20) // Of nobody any more.

	second, _ := y.connect("10.0.0.1")
	third, _ := y.connect("10.0.0.1")
	full, fuller := y.call(second, 1, 30, true), y.call(third, 1, 32, true)
	requireEnded(t, "ooo", small, full, fuller)
	y.of.add(first, 1, 1<<10)
	requireEnded(t, "oox", small, full, fuller)
	require.Equal(t, 49<<10, y.of.held())

	other, _ := y.connect("10.0.0.2")
	theirs := y.call(other, 1, 39, true)
	another, _ := y.connect("10.0.0.2")
	few := y.call(another, 1, 12, true)
	requireEnded(t, "oooo", small, full, theirs, few)
	y.of.add(first, 1, 1<<10) // All have 101 KiB, and the host of this one 50 of them.
	requireEnded(t, "ooxo", small, full, theirs, few)
	require.Len(t, y.why, 3)
	require.NoError(t, first.Close())
	require.NoError(t, another.Close())
	require.Equal(t, 30<<10, y.of.held(), "what is closed counts no more")
}

// The largest message has room twice, whatever the bounds of all are.
func TestTheLargestMessageHasRoom(t *testing.T) {
	a := newArrivals(1000, 1<<20, nil)
	least := 2 * (1<<20 + callBytes)
	require.Equal(t, []int{least, least, least}, []int{a.conn, a.host, a.all})
	a = newArrivals(100<<20, 1<<20, nil)
	require.Equal(t, []int{25 << 20, 50 << 20, 100 << 20}, []int{a.conn, a.host, a.all})
}

// A message that a handler has taken counts no more, and the next one has its time anew. One that does not come in its
// time ends its call: that of a call which has one, and one of which something has come.
func TestMessagesHaveTheirTime(t *testing.T) {
	y := newYard(t)
	f, _ := y.connect("10.0.0.1")
	silent, idle := y.call(f, 1, 4, true), y.call(f, 3, 4, false)
	busy, taken := y.call(f, 5, 5, false), y.call(f, 7, 5, true)
	arrivalOf(taken).take(1 << 10)
	require.Equal(t, 17<<10, y.of.held())
	for range sweeps {
		y.of.sweep()
	}
	requireEnded(t, "oooo", silent, idle, busy, taken)
	arrivalOf(busy).take(1 << 10)
	y.of.add(f, 5, 1<<10)
	y.of.sweep()
	requireEnded(t, "xooo", silent, idle, busy, taken)
	for range sweeps {
		y.of.sweep()
	}
	requireEnded(t, "xoxo", silent, idle, busy, taken)
	require.Equal(t, []error{errLate, errLate}, y.why)
}

// Frames are followed, in whatever parts they come: data counts without its padding, and nothing else does.
func TestFramesAreFollowed(t *testing.T) {
	y := newYard(t)
	f, client := y.connect("10.0.0.1")
	_ = y.call(f, 1, 4, true)
	frame := func(kind, flags byte, stream uint32, body []byte) []byte {
		head := binary.BigEndian.AppendUint32(nil, uint32(len(body))<<8|uint32(kind))
		return append(binary.BigEndian.AppendUint32(append(head, flags), stream|1<<31), body...)
	}
	bytes := make([]byte, prefaceBytes)
	bytes = append(bytes, frame(4, 0, 0, make([]byte, 30))...)                                        // Settings.
	bytes = append(bytes, frame(typeData, 0, 1, make([]byte, 100))...)                                // Counts 100.
	bytes = append(bytes, frame(typeData, flagPadded, 1, append([]byte{40}, make([]byte, 60)...))...) // Counts 20.
	bytes = append(bytes, frame(typeData, flagPadded, 1, nil)...)                                     // Has no length of its padding.
	bytes = append(bytes, frame(typeData, 0, 3, make([]byte, 50))...)                                 // Of nobody.
	bytes = append(bytes, frame(1, flagPadded, 1, make([]byte, 50))...)                               // Headers.
	go func() {
		for _, b := range bytes {
			_, _ = client.Write([]byte{b})
		}
	}()
	_, err := io.ReadFull(f, make([]byte, len(bytes)))
	require.NoError(t, err)
	require.Equal(t, callBytes+120, y.of.held())
}
