// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"context"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
)

// The system asks whether the other end of an idle connection is still there: on lanes of
// control, of which a node has many, less often.
func TestTheSystemAsksOnAnIdleLaneOfGRPC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	address, err := gossip.ParseAddress(l.Addr().String())
	require.NoError(t, err)
	for class, want := range map[transport.LaneClass]int{machine.LaneControl: 30, machine.LaneBulk: 10} {
		cfg := transport.Default()
		d := newDialer(gossip.Address{Host: "127.0.0.1", Port: 7946}, cfg, nil)
		connect, dialled := d.connect, make(chan net.Conn, 16)
		d.connect = func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := connect(ctx, address)
			if err == nil {
				dialled <- conn
			}
			return conn, err
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { // Owner: the test. Ends by cancel, waited for below.
			_, err := d.Dial(ctx, address, class)
			ended <- err
		}()
		conn := <-dialled
		// It has been set once the preface of the opener is there.
		accepted, err := l.Accept()
		require.NoError(t, err)
		_, err = accepted.Read(make([]byte, 1))
		require.NoError(t, err)
		raw, err := conn.(*net.TCPConn).SyscallConn()
		require.NoError(t, err)
		idle, on := 0, 0
		require.NoError(t, raw.Control(func(fd uintptr) {
			on, _ = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_KEEPALIVE)
			idle, _ = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE)
		}))
		require.Equal(t, 1, on)
		require.Equal(t, want, idle)
		require.NoError(t, accepted.Close())
		cancel()
		require.Error(t, <-ended)
	}
}
