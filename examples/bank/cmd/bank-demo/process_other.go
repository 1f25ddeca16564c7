// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import (
	"errors"
	"syscall"
)

// canFreeze tells whether a process can be stopped and go on here.
const canFreeze = false

// stopSignal is there because it is named; nothing sends it here.
const stopSignal = syscall.SIGTERM

// freeze stops the process.
func (p *process) freeze() error { return errors.ErrUnsupported }

// thaw lets it go on. A process that was never stopped needs nothing.
func (p *process) thaw() error { return nil }
