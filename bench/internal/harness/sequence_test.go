// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The verdict on each number, in whatever order they come, agrees with the set of those
// before.
func TestSequenceAgreesWithASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s sequence
		seen := make(map[uint64]bool)
		var highest uint64
		for _, n := range rapid.SliceOf(rapid.Uint64Range(1, 30)).Draw(t, "numbers") {
			want := late
			switch {
			case seen[n]:
				want = duplicated
			case n == highest+1:
				want = inOrder
			case n > highest:
				want = ahead
			}
			if got := s.check(n); got != want {
				t.Fatalf("number %d after %v: verdict %d, want %d", n, seen, got, want)
			}
			seen[n], highest = true, max(highest, n)
		}
	})
}

func TestTallyTellsFaultsApart(t *testing.T) {
	var found Tally
	r := found.Receiver(2, 64)
	for _, seq := range []uint64{1, 2, 4, 3, 3} {
		r.Take(0, seq, 64)
	}
	r.Take(1, 1, 64)
	r.Take(1, 2, 63) // The message has another length.
	r.Take(2, 1, 64) // The sender is unknown.
	require.Equal(t, Totals{Received: 5, OutOfOrder: 1, Duplicated: 1, Damaged: 2}, found.Totals())
	require.Error(t, found.Totals().Err())
}
