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

// identity looks the user and the group up; it is nil if none is named. A number need not have a
// name in the system, as in most containers; but a user without one has no group of its own.
func (c Confinement) identity() (*identity, error) {
	if c.User == "" && c.Group == "" {
		return nil, nil
	}
	uid, gid := strconv.Itoa(os.Geteuid()), strconv.Itoa(os.Getegid())
	if c.User != "" {
		u, err := user.Lookup(c.User)
		if err != nil {
			u, err = user.LookupId(c.User)
		}
		switch {
		case err == nil:
			uid, gid = u.Uid, u.Gid
		case !isNumber(c.User):
			return nil, fmt.Errorf("there is no user %q", c.User)
		case c.Group == "":
			return nil, fmt.Errorf("there is no user %s whose group could be taken: set group", c.User)
		default:
			uid = c.User
		}
	}
	if c.Group != "" {
		g, err := user.LookupGroup(c.Group)
		switch {
		case err == nil:
			gid = g.Gid
		case !isNumber(c.Group):
			return nil, fmt.Errorf("there is no group %q", c.Group)
		default:
			gid = c.Group
		}
	}
	u, errU := strconv.ParseUint(uid, 10, 32)
	g, errG := strconv.ParseUint(gid, 10, 32)
	if err := cmp.Or(errU, errG); err != nil {
		return nil, err
	}
	return &identity{uint32(u), uint32(g)}, nil
}

// isNumber reports whether a text is the number of a user or a group. The last one means nobody
// to the kernel.
func isNumber(text string) bool {
	n, err := strconv.ParseUint(text, 10, 32)
	return err == nil && n != 1<<32-1
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
