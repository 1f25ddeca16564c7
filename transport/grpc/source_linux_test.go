// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
)

// A node that dials from its own loopback address has the system choose the port when
// it connects: ports chosen at the binding are used up by ten thousand connections,
// and the search for a free port takes longer and longer.
func TestTheSourcePortIsChosenWhenTheOtherEndIsKnown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	d := newDialer(gossip.Address{Host: "127.0.0.2", Port: 7946}, transport.Default(), nil)
	conn, err := d.connect(t.Context(), l.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.Equal(t, "127.0.0.2", conn.LocalAddr().(*net.TCPAddr).IP.String())
	raw, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	late := 0
	require.NoError(t, raw.Control(func(fd uintptr) {
		late, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_IP, bindAddressNoPort)
	}))
	require.NoError(t, err)
	require.Equal(t, 1, late)
}
