// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package bench

import (
	"os"
	"time"
)

// cpuTime returns zero: how much processor time this process has used is only
// known after its end here. Figures then show no processor time.
func cpuTime() time.Duration { return 0 }

// interrupts are the signals that end the program in order.
func interrupts() []os.Signal { return []os.Signal{os.Interrupt} }
