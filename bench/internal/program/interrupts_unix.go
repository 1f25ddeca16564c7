// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package program

import (
	"os"
	"syscall"
)

// interrupts are the signals that end the program in order.
func interrupts() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }
