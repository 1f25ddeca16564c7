// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What has come is acknowledged, and the system puts the acknowledgement of what comes next
// off, to send it with data. A connection that has ended, or is none of the system's, does no
// harm.
func TestTheSystemPutsTheNextAcknowledgementOff(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	opened, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer func() { _ = opened.Close() }()
	accepted, err := l.Accept()
	require.NoError(t, err)
	raw, err := accepted.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	atOnce := func() (v int) {
		require.NoError(t, raw.Control(func(fd uintptr) {
			v, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK)
		}))
		require.NoError(t, err)
		return v
	}
	_, err = opened.Write([]byte{1})
	require.NoError(t, err)
	_, err = io.ReadFull(accepted, make([]byte, 1))
	require.NoError(t, err)
	require.Equal(t, 1, atOnce(), "a new connection acknowledges at once")
	for range 2 {
		acknowledge(accepted)
		require.Zero(t, atOnce())
	}
	require.NoError(t, accepted.Close())
	acknowledge(accepted)
	a, b := net.Pipe()
	acknowledge(a)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}
