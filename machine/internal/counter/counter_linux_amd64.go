// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package counter

import "errors"

// source is the clock source of a kernel that computes its clocks from the counter.
const source = "tsc"

// Read returns the ticks since some moment, and the number of the processor that was asked.
//
//go:noescape
func Read() (ticks uint64, processor uint32)

// cpuid asks the processor about itself.
//
//go:noescape
func cpuid(leaf uint32) (eax, edx uint32)

// What the processor says about its counter, by leaf of CPUID and bit of EDX.
const (
	leafHighest   = 0x80000000
	leafFeatures  = 0x80000001
	leafPower     = 0x80000007
	bitReadTSCP   = 27
	bitInvariant  = 8
	highestNeeded = leafPower
)

// steady returns why the counter does not run at one rate in all states of the processor.
func steady() error {
	if highest, _ := cpuid(leafHighest); highest < highestNeeded {
		return errors.New("the processor does not say whether its counter is invariant")
	}
	if _, features := cpuid(leafFeatures); features&(1<<bitReadTSCP) == 0 {
		return errors.New("the processor has no RDTSCP")
	}
	if _, power := cpuid(leafPower); power&(1<<bitInvariant) == 0 {
		return errors.New("the counter of the processor is not invariant")
	}
	return nil
}
