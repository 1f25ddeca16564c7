// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import "time"

// Usage is what a process has used.
type Usage struct {
	At  time.Duration `json:"at"` // By the clock of the machine, since 1970.
	CPU time.Duration `json:"cpu"`

	// The others are zero on systems that do not tell them.

	Sleeps   int64    `json:"sleeps"`   // How often a thread had nothing to do, and slept.
	Resident int64    `json:"resident"` // Bytes in memory.
	Own      int64    `json:"own"`      // Those of them that are not of files, which processes share.
	Sockets  Snapshot `json:"sockets"`
}
