// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || !(amd64 || arm64)

package counter

import "errors"

// Read is not to be called where there is no counter that is [Usable].
func Read() (ticks uint64, processor uint32) { return 0, 0 }

// Usable returns that there is no counter.
func Usable() error {
	return errors.New("no counter is known on this platform whose kernel says that it computes its clocks from it")
}
