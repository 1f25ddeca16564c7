// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"net"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of Linux, which package syscall does not name.
const tcpUserTimeout = 18

// limitUnacknowledged has the system end a connection when bytes that were sent have not
// been acknowledged by the other system for d.
func limitUnacknowledged(conn net.Conn, d time.Duration) error {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	err = raw.Control(func(fd uintptr) {
		refused = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return refused
}
