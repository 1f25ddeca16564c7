// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The places of messages, kept for runs, are those that a place for each message would be, and as
// few runs as there are places in a row.
func TestPlacesAreThoseOfEachMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p places
		each, first := make(map[uint64]uint64), uint64(1)
		number := func(label string) uint64 { return rapid.Uint64Range(first, first+20).Draw(t, label) }
		t.Repeat(map[string]func(*rapid.T){
			"change": func(t *rapid.T) {
				from, to := number("from"), number("to")
				old, place := rapid.Uint64Range(0, 3).Draw(t, "old"), rapid.Uint64Range(0, 3).Draw(t, "new")
				change := func(at uint64) uint64 {
					if at == old {
						return place
					}
					return at
				}
				p.change(from, to, change)
				for ; from < to; from++ {
					each[from] = change(each[from])
				}
			},
			"cut": func(*rapid.T) {
				first = number("below")
				p.cut(first)
			},
			"": func(*rapid.T) {
				end, runs := uint64(0), 0
				for seq := first + 60; seq >= first; seq-- {
					require.Equal(t, each[seq], p.at(seq), "message %d of %v", seq, p)
					if each[seq] != 0 && end == 0 {
						end = seq + 1
						require.Equal(t, end, p.end())
					}
					if each[seq] != each[seq+1] {
						runs++
					}
				}
				require.LessOrEqual(t, p.end(), max(end, first), "nothing behind it has a place")
				require.LessOrEqual(t, len(p), runs+1) // One more is of messages that were cut.
			},
		})
	})
}
