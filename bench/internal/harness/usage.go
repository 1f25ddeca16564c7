// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import "time"

// Usage is what a process has used.
type Usage struct {
	At       time.Duration `json:"at"` // By the clock of the machine, since 1970.
	CPU      time.Duration `json:"cpu"`
	Sleeps   int64         `json:"sleeps"`   // How often a thread had nothing to do and was woken later; 0 where it is not known.
	Resident int64         `json:"resident"` // Bytes in memory; 0 where it is not known.
	Own      int64         `json:"own"`      // Those of them that are not of files, such as the executable, which processes share.
	Sockets  Snapshot      `json:"sockets"`
}
