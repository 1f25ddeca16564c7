// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import "syscall"

// canFreeze tells whether this system can stop a process and let it go on.
const canFreeze = true

// canOperate tells whether nodes listen for operators on a Unix socket.
const canOperate = true

// stopSignal stops a process.
const stopSignal = syscall.SIGSTOP

// freeze stops the process.
func (p *process) freeze() error { return p.Cmd.Process.Signal(syscall.SIGSTOP) }

// thaw lets it go on.
func (p *process) thaw() error { return p.Cmd.Process.Signal(syscall.SIGCONT) }
