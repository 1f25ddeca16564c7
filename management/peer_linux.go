// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// peer names the user at the other end of a socket. The mode of the socket keeps others out
// already; but a directory above may have been given away, and root is to be told apart.
func peer(conn *net.UnixConn) (string, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return "", err
	}
	var who *syscall.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		who, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return "", err
	}
	if who.Uid != 0 && int(who.Uid) != os.Geteuid() {
		return "", fmt.Errorf("user %d is neither that of the node nor root", who.Uid)
	}
	return fmt.Sprintf("user %d, process %d", who.Uid, who.Pid), nil
}
