// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"math"
	"slices"
	"time"
)

// Repeated measurements are reduced to one value, and the distance between them is judged. All
// functions are pure except [Percentile], which sorts its argument.

// Round keeps five digits: no measurement has more.
func Round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	scale := math.Pow(10, 4-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// MaxMoved is the part by which a floor may move between its runs before the figures
// compared with it count as unstable.
const MaxMoved = 0.2

// Median returns the middle of the values, the mean of the two middle ones when
// their number is even, and NaN without any.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// moved returns the part of the smallest value by which the largest exceeds it.
func moved(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	low, high := slices.Min(values), slices.Max(values)
	switch {
	case low == high:
		return 0
	case low <= 0:
		return math.Inf(1)
	}
	return high/low - 1
}

// Steady reports whether the runs of a floor are close enough to each other.
func Steady(values []float64) bool { return moved(values) <= MaxMoved }

// Percentile returns the value below which the part p of the durations lies. It
// sorts them, and returns zero without any.
func Percentile(durations []time.Duration, p float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	slices.Sort(durations)
	at := int(math.Ceil(p*float64(len(durations)))) - 1
	return durations[min(max(at, 0), len(durations)-1)]
}
