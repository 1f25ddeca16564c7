// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package counter

// source is the clock source of a kernel that computes its clocks from the counter.
const source = "arch_sys_counter"

// Read returns the ticks since some moment. The processor is 0: all share one counter.
//
//go:noescape
func Read() (ticks uint64, processor uint32)

// steady returns nil: the architecture demands that the counter runs at one rate.
func steady() error { return nil }
