// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import (
	"errors"
	"syscall"
)

// canFreeze tells whether this system can stop a process and let it go on.
const canFreeze = false

// canOperate tells whether nodes listen for operators on a Unix socket.
const canOperate = false

// stopSignal exists for the compiler; it is never sent on this system.
const stopSignal = syscall.SIGTERM

// freeze stops the process.
func (p *process) freeze() error { return errors.ErrUnsupported }

// thaw lets it go on. A process that was never stopped needs nothing.
func (p *process) thaw() error { return nil }
