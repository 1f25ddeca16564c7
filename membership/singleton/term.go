// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package singleton

import (
	"cmp"
	"strconv"

	"github.com/quorate/quorate/gossip"
)

// Term numbers the times at which a singleton was started. No two starts in
// one cluster have equal terms: up-numbers are never used twice, and a process
// counts its starts. A younger member has a higher term than every older one.
// The zero value is none and is below all others.
type Term struct {
	// UpNumber is the up-number of the node that started it.
	UpNumber gossip.UpNumber
	// Start counts the starts in that process, from 1.
	Start uint64
}

// Compare orders by up-number, then by start.
func (t Term) Compare(o Term) int {
	if c := cmp.Compare(t.UpNumber, o.UpNumber); c != 0 {
		return c
	}
	return cmp.Compare(t.Start, o.Start)
}

// IsZero reports whether t is none.
func (t Term) IsZero() bool { return t == Term{} }

// String returns "up.start", such as "3.1".
func (t Term) String() string {
	return strconv.FormatUint(uint64(t.UpNumber), 10) + "." + strconv.FormatUint(t.Start, 10)
}
