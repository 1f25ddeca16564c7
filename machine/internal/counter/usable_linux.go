// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package counter

import (
	"fmt"
	"os"
	"strings"
)

// sourceFile is where the kernel says from what it computes its clocks.
const sourceFile = "/sys/devices/system/clocksource/clocksource0/current_clocksource"

// Usable returns why the counter is no measure of time here, or nil.
//
// That the processor calls its counter steady is not enough: the counters of two processors
// may differ, firmware may have set them, a hypervisor may emulate them. The kernel has
// tested all that. It computes its clocks from the counter only if it trusts the counter,
// and then a counter that stands still, in a machine that its host stops for a while, stands
// still for the clocks too.
func Usable() error {
	if err := steady(); err != nil {
		return err
	}
	return usableBy(sourceFile)
}

func usableBy(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("the kernel does not say from what it computes its clocks: %w", err)
	}
	if got := strings.TrimSpace(string(text)); got != source {
		return fmt.Errorf("the kernel computes its clocks from %q, not from %q", got, source)
	}
	return nil
}
