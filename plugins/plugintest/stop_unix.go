// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package plugintest

import "syscall"

// stopSignals lists the signal that stops a process without ending it.
func stopSignals() []syscall.Signal { return []syscall.Signal{syscall.SIGSTOP} }
