// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"cmp"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// identity is a user and a group of the system; nil is those of the host.
type identity struct{ uid, gid uint32 }

// identity looks the user and the group up; it is nil if none is named.
func (c Confinement) identity() (*identity, error) {
	if c.User == "" && c.Group == "" {
		return nil, nil
	}
	uid, gid := strconv.Itoa(os.Geteuid()), strconv.Itoa(os.Getegid())
	if c.User != "" {
		u, err := lookUpUser(c.User)
		if err != nil {
			return nil, err
		}
		uid, gid = u.Uid, u.Gid
	}
	if c.Group != "" {
		g, err := user.LookupGroup(c.Group)
		if err != nil {
			g, err = user.LookupGroupId(c.Group)
		}
		if err != nil {
			return nil, fmt.Errorf("there is no group %q", c.Group)
		}
		gid = g.Gid
	}
	u, errU := strconv.ParseUint(uid, 10, 32)
	g, errG := strconv.ParseUint(gid, 10, 32)
	if err := cmp.Or(errU, errG); err != nil {
		return nil, err
	}
	return &identity{uint32(u), uint32(g)}, nil
}

// lookUpUser finds a user by name or number.
func lookUpUser(name string) (*user.User, error) {
	u, err := user.Lookup(name)
	if err != nil {
		u, err = user.LookupId(name)
	}
	if err != nil {
		return nil, fmt.Errorf("there is no user %q", name)
	}
	return u, nil
}

// credential is what a child is started with: it belongs to no other groups.
func (i *identity) credential() *syscall.Credential {
	if i == nil {
		return nil
	}
	return &syscall.Credential{Uid: i.uid, Gid: i.gid}
}

// own gives a directory to the user, so that the process can make its socket in it.
func (i *identity) own(path string) error {
	if i == nil {
		return nil
	}
	return os.Chown(path, int(i.uid), int(i.gid))
}

// mayChangeUser reports whether this process can start others as another user.
func mayChangeUser() bool { return os.Geteuid() == 0 }
