// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package harness

import "time"

// CPUTime returns zero: on this system the processor time of a process is known only
// after its end. Figures then show no processor time.
func CPUTime() time.Duration { return 0 }

// ChildrenCPUTime returns zero, for the same reason.
func ChildrenCPUTime() time.Duration { return 0 }
