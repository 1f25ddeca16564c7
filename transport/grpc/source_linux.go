// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import "syscall"

// bindAddressNoPort is IP_BIND_ADDRESS_NO_PORT of Linux 4.2 and later, which
// package syscall does not name.
const bindAddressNoPort = 24

// lateSourcePort has the system choose the port of a socket that is bound to an
// address when the socket connects. Chosen when it is bound, where the other end
// is not known yet, each connection would take a port for itself alone: some ten
// thousand connections of one address use them up, and to find one of the last
// takes the system milliseconds each time.
func lateSourcePort(_, _ string, conn syscall.RawConn) error {
	// An older kernel refuses the option; its ports are then chosen early.
	return conn.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, bindAddressNoPort, 1) })
}
