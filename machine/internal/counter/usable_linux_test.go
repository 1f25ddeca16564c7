// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package counter

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The kernel's word is what counts: a processor whose counter is steady is not enough.
func TestTheKernelHasToComputeItsClocksFromTheCounter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "current_clocksource")
	require.ErrorIs(t, usableBy(file), os.ErrNotExist, "a kernel that says nothing")
	for _, other := range []string{"", "hpet\n", "kvm-clock\n", "acpi_pm\n", "tsc-early\n"} {
		require.NoError(t, os.WriteFile(file, []byte(other), 0o600))
		require.ErrorContains(t, usableBy(file), "computes its clocks from")
	}
	require.NoError(t, os.WriteFile(file, []byte(source+"\n"), 0o600))
	require.NoError(t, usableBy(file))
}

// A counter that is usable runs forward on each processor.
func TestTheCounterRunsForward(t *testing.T) {
	if err := Usable(); err != nil {
		t.Log(err) // The counter may stand still here: nothing is built on it.
		return
	}
	last, on := Read()
	ran := 0
	for range 10_000 {
		ticks, processor := Read()
		if processor == on && ticks > last {
			ran++
		}
		last, on = ticks, processor
	}
	require.Greater(t, ran, 5000)
}

func BenchmarkRead(b *testing.B) {
	for b.Loop() {
		_, _ = Read()
	}
}
