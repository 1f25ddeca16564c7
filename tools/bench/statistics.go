// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"slices"
	"time"
)

// movedMax is by which part a floor may move between its runs before what
// stands on it is unstable.
const movedMax = 0.2

// median returns the middle of the values, the mean of the two middle ones when
// their number is even, and NaN without any.
func median(values []float64) float64 {
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

// moved returns by which part of the smallest value the largest exceeds it.
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

// steady reports whether the runs of a floor are close enough to each other.
func steady(values []float64) bool { return moved(values) <= movedMax }

// percentile returns the value below which the part p of the durations lies. It
// sorts them, and returns zero without any.
func percentile(durations []time.Duration, p float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	slices.Sort(durations)
	at := int(math.Ceil(p*float64(len(durations)))) - 1
	return durations[min(max(at, 0), len(durations)-1)]
}
