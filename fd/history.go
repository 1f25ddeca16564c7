// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd

import (
	"math"
	"math/bits"
	"time"
)

// history holds the latest intervals, and their sums as exact integers. Sums of floats
// would drift as samples come and go: after a day of heartbeats the error of a sum of
// squares can exceed the variance.
//
// Invariant H1: sum and squares are the sums over intervals. They cannot overflow: an
// interval is at most an hour, below 2^42 ns, and there are at most 10,000.
type history struct {
	sizeMax   int
	intervals []uint64 // In nanoseconds; in order of arrival until full, then a ring.
	oldest    int      // The index that the next sample replaces, once full.
	sum       uint64
	squares   wide
}

// add appends an interval, in place of the oldest one when the history is full.
func (h *history) add(interval time.Duration) {
	sample := uint64(interval)
	h.sum += sample
	h.squares = h.squares.plus(square(sample))
	if len(h.intervals) < h.sizeMax {
		h.intervals = append(h.intervals, sample)
		return
	}
	gone := h.intervals[h.oldest]
	h.sum -= gone
	h.squares = h.squares.minus(square(gone))
	h.intervals[h.oldest] = sample
	h.oldest = (h.oldest + 1) % h.sizeMax
}

// moments returns the mean and the standard deviation of a history that is not
// empty, in nanoseconds. The variance is (n*squares - sum*sum) / n^2; the
// difference is exact, so nothing is lost by cancellation, and cannot be
// negative by the inequality of Cauchy and Schwarz.
func (h *history) moments() (mean, deviation float64) {
	n := uint64(len(h.intervals))
	difference := h.squares.times(n).minus(square(h.sum))
	return float64(h.sum) / float64(n), math.Sqrt(difference.float()) / float64(n)
}

// wide is an unsigned integer of 128 bits.
type wide struct{ high, low uint64 }

func square(x uint64) wide {
	high, low := bits.Mul64(x, x)
	return wide{high, low}
}

func (w wide) plus(v wide) wide {
	low, carry := bits.Add64(w.low, v.low, 0)
	high, _ := bits.Add64(w.high, v.high, carry)
	return wide{high, low}
}

func (w wide) minus(v wide) wide {
	low, borrow := bits.Sub64(w.low, v.low, 0)
	high, _ := bits.Sub64(w.high, v.high, borrow)
	return wide{high, low}
}

func (w wide) times(n uint64) wide {
	high, low := bits.Mul64(w.low, n)
	return wide{high + w.high*n, low}
}

func (w wide) float() float64 {
	return float64(w.high)*(1<<64) + float64(w.low)
}
