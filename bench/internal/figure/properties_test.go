// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// measurements draws the values of several runs, none of them zero or below.
func measurements(t *rapid.T) []float64 {
	return rapid.SliceOfN(rapid.Float64Range(1e-6, 1e9), 1, 40).Draw(t, "values")
}

// At most half of the values lie below the median and at most half above it, and the median
// is the same for every order of the runs.
func TestMedianHalvesTheValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := measurements(t)
		m := Median(values)
		below, above := 0, 0
		for _, v := range values {
			if v < m {
				below++
			}
			if v > m {
				above++
			}
		}
		if 2*below > len(values) || 2*above > len(values) {
			t.Fatalf("%v: %d below and %d above %v", values, below, above, m)
		}
		if other := Median(rapid.Permutation(values).Draw(t, "order")); other != m {
			t.Fatalf("%v: %v in another order, %v in this", values, other, m)
		}
	})
}

// One run in a bad minute leaves the median among the other runs, however bad it was.
func TestMedianWithstandsAnOutlier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		good := rapid.SliceOfN(rapid.Float64Range(90, 110), 2, 10).Draw(t, "good")
		bad := rapid.Float64Range(0, 1e9).Draw(t, "bad")
		if m := Median(append(slices.Clone(good), bad)); m < slices.Min(good) || m > slices.Max(good) {
			t.Fatalf("%v and %v: median %v", good, bad, m)
		}
	})
}

// A percentile is one of the durations; at least the part p of them is not longer, and
// less than that part is shorter.
func TestPercentileIsTheNearestRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var took []time.Duration
		for _, n := range rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 200).Draw(t, "took") {
			took = append(took, time.Duration(n))
		}
		p := float64(rapid.IntRange(1, 1000).Draw(t, "p")) / 1000
		got := Percentile(took, p)
		if !slices.Contains(took, got) {
			t.Fatalf("%v is none of %v", got, took)
		}
		notLonger, shorter := 0, 0
		for _, d := range took {
			if d <= got {
				notLonger++
			}
			if d < got {
				shorter++
			}
		}
		want := p * float64(len(took))
		if float64(notLonger) < want-1e-9 || float64(shorter) >= want+1e-9 {
			t.Fatalf("percentile %v of %v is %v: %d are not longer, %d are shorter", p, took, got, notLonger, shorter)
		}
	})
}

// What counts is the relation of the runs to each other: another unit or another order
// does not make a floor unstable.
func TestMovedIgnoresUnitAndOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := measurements(t)
		scale := rapid.Float64Range(1e-3, 1e3).Draw(t, "scale")
		scaled := rapid.Permutation(values).Draw(t, "order")
		scaled = slices.Clone(scaled)
		for i := range scaled {
			scaled[i] *= scale
		}
		a, b := moved(values), moved(scaled)
		if a < 0 || math.Abs(a-b) > 1e-9*(1+a) {
			t.Fatalf("%v moved by %v, %v by %v", values, a, scaled, b)
		}
	})
}

// Rounding loses less than half of the fifth digit, keeps the sign, and has no effect
// on a rounded value.
func TestRoundKeepsFiveDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(1e-9, 1e12).Draw(t, "value")
		if rapid.Bool().Draw(t, "negative") {
			v = -v
		}
		r := Round(v)
		if math.Abs(r-v) > 0.5001e-4*math.Abs(v) || math.Signbit(r) != math.Signbit(v) {
			t.Fatalf("%v is rounded to %v", v, r)
		}
		if again := Round(r); math.Abs(again-r) > 1e-12*math.Abs(r) {
			t.Fatalf("%v is rounded to %v, and that to %v", v, r, again)
		}
	})
}
