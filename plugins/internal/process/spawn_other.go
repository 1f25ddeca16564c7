// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package process

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

const openNonblock = 0

// attributes sets nothing on this system.
func attributes(*identity) *syscall.SysProcAttr { return nil }

// identity is nobody on this system.
type identity struct{}

// identity is the user of the host.
func (c Confinement) identity() (*identity, error) {
	if c.User != "" || c.Group != "" {
		return nil, errors.New("the user of a plugin cannot be chosen on " + runtime.GOOS)
	}
	return nil, nil
}

func mayChangeUser() bool { return false }

// own changes nothing on this system.
func (*identity) own(string) error { return nil }

// inheritable returns none: on this system a child gets what it is given.
func inheritable() ([]int, error) { return nil, nil }

// killGroup kills the process; this system has no groups.
func killGroup(p *os.Process) {
	_ = p.Kill() // The process has ended already.
}

func busy(error) bool { return false }

// executable cannot tell on this system: the launch will.
func executable(os.FileInfo) bool { return true }
