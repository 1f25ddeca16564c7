// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// burst puts n messages into a mailbox, and takes them out.
func burst(b *mailbox, n int) {
	for i := range n {
		b.push(Mail{Value: i})
	}
	for range n {
		b.pop()
	}
}

// The ring of a mailbox that bursts fill again and again is not made anew for each of them, and
// one that is not needed any more is given back.
func TestARingIsKeptWhileItIsUsed(t *testing.T) {
	var b mailbox
	burst(&b, 1000)
	require.Len(t, b.ring, 1024)
	require.Zero(t, testing.AllocsPerRun(10, func() { burst(&b, 128) }))
	require.Len(t, b.ring, 1024)
	burst(&b, 127)
	require.Len(t, b.ring, 1)
	burst(&b, ringKept)
	burst(&b, 1)
	require.Len(t, b.ring, ringKept, "a small ring is kept")
	burst(&b, 1000)
	for range 1000 {
		b.push(Mail{Value: 1})
	}
	b.truncate()
	burst(&b, 1)
	require.Len(t, b.ring, 1)
}
