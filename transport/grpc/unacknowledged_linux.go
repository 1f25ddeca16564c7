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

// acknowledge has the system acknowledge what has come on a connection now, and put off the
// acknowledgement of what comes next, as it does where data goes both ways in turns. It
// takes a connection out of that mode itself when it had to acknowledge without data. What
// fails changes nothing but the number of packets.
func acknowledge(conn net.Conn) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 0)
	})
}
