// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Whatever changes, the values that follow from what is listed are the values, at the end and at
// every kept moment.
func TestTrackKeepsTheValuesWhateverItLeavesOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(2, 20).Draw(t, "most")
		track := newChangeHistory(most)
		truth := make(map[valueKey]int)
		var times []map[valueKey]int // The values after each moment.
		for at := range rapid.IntRange(1, 100).Draw(t, "moments") {
			w := valueKey{kindView, rapid.IntRange(0, 2).Draw(t, "a"), rapid.IntRange(0, 2).Draw(t, "b")}
			v := rapid.IntRange(0, 2).Draw(t, "v")
			track.set(int64(at), w, v)
			put(truth, w, v)
			times = append(times, maps.Clone(truth))
		}
		list := track.list()
		if len(track.kept) > most {
			t.Fatalf("%d changes are kept", len(track.kept))
		}
		for at := int(track.from); at < len(times); at++ {
			got := make(map[valueKey]int)
			for _, c := range list {
				if c[0] <= int64(at) {
					put(got, valueKey{int(c[1]), int(c[2]), int(c[3])}, int(c[4]))
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(times[at]) {
				t.Fatalf("at %d: %v, want %v", at, got, times[at])
			}
		}
	})
}

func TestArrowsOfEveryKindAndSecondAreKeptAndTheLastOnes(t *testing.T) {
	a := newDrawnMessages(100, 10)
	for i := range 10_000 {
		a.add(drawnMessage{sent: int64(i) * 1000, kind: i % 3}) // A thousand in each of ten seconds.
	}
	list := a.list()
	require.LessOrEqual(t, len(list), 110)
	seen := make(map[[2]int64]int)
	for _, m := range list {
		seen[[2]int64{m[0] / 1_000_000, m[4]}]++
	}
	require.Len(t, seen, 30)
	for _, m := range list[len(list)-10:] {
		require.GreaterOrEqual(t, m[0], int64(9_990_000))
	}
	for range 1000 { // More seconds than room.
		a.add(drawnMessage{sent: int64(a.all) * 1_000_000})
	}
	require.LessOrEqual(t, len(a.list()), 110)
	require.Equal(t, 1, a.few)
}

func TestMarksKeepTheFirstAndTheLast(t *testing.T) {
	m := newMarks(4)
	for i := range 9 {
		m.add(int64(i), markScript, -1, strings.Repeat("ü", 1000))
		list, left := m.list()
		require.Equal(t, i+1, len(list)+left)
		require.True(t, utf8.ValidString(list[0].Text))
		require.LessOrEqual(t, len(list[0].Text), maxText+len("…"))
	}
	list, left := m.list()
	require.Equal(t, 5, left)
	require.Equal(t, []int64{0, 1, 7, 8}, []int64{list[0].At, list[1].At, list[2].At, list[3].At})
}

func TestRatesOfALongRunAreCountedInWiderBuckets(t *testing.T) {
	var r rates
	r.width = 1
	for i := range 10_000 {
		r.add(time.Duration(i)*time.Second, i%2 == 0)
	}
	require.Equal(t, 4, r.width)
	sum := 0
	for _, n := range r.sent {
		sum += n
	}
	require.Equal(t, []int{10_000, 4, 2}, []int{sum, r.sent[0], r.lost[0]})
	require.LessOrEqual(t, len(r.sent), maxRates)
}
