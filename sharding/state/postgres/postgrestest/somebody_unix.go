// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package postgrestest

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// crash ends a server without that it shuts down.
const crash = syscall.SIGQUIT

// somebody returns how a process is run as somebody else than the administrator, for whom PostgreSQL
// does not run, and gives them a directory.
func somebody(dir string) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setpgid: true} // An interrupt at the terminal is not for the server.
	if os.Getuid() != 0 {
		return attr, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, os.Chown(dir, int(uid), int(gid))
}
