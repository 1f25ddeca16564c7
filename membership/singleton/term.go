// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package singleton

import (
	"cmp"
	"strconv"

	"github.com/quorate/quorate/gossip"
)

// Term numbers the starts of a singleton. No two starts in one cluster have equal terms,
// by construction: the uid is that of one process, which counts its starts. A younger
// member has a higher term than every older one, and the terms of one member grow. The
// zero value means no start and is below all others.
type Term struct {
	// UpNumber is the up-number of the node that started the instance.
	UpNumber gossip.UpNumber
	// UID is the uid of that node: two leaders may have given the same up-number.
	UID gossip.UID
	// Start counts the starts in that process, from 1.
	Start uint64
}

// Age returns the age of the node that started it.
func (t Term) Age() gossip.Age { return gossip.Age{UpNumber: t.UpNumber, UID: t.UID} }

// Compare orders by the age of the node, as members are ordered, then by start.
func (t Term) Compare(o Term) int {
	return cmp.Or(t.Age().Compare(o.Age()), cmp.Compare(t.Start, o.Start))
}

// IsZero reports whether t is none.
func (t Term) IsZero() bool { return t == Term{} }

// String returns "up-uid.start" with the uid in hexadecimal, such as "3-1b0f.1".
func (t Term) String() string {
	return strconv.FormatUint(uint64(t.UpNumber), 10) + "-" + strconv.FormatUint(uint64(t.UID), 16) + "." +
		strconv.FormatUint(t.Start, 10)
}
