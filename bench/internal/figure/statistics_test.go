// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	require.InDelta(t, 2, Median([]float64{3, 1, 2}), 0)
	require.InDelta(t, 2.5, Median([]float64{4, 1, 2, 3}), 0)
	require.InDelta(t, 7, Median([]float64{7}), 0)
	require.True(t, math.IsNaN(Median(nil)))
	values := []float64{3, 1, 2}
	Median(values)
	require.Equal(t, []float64{3, 1, 2}, values, "the runs stay in their order")
}

// A floor whose best run exceeds its worst by more than a fifth is unstable.
func TestSteady(t *testing.T) {
	require.True(t, Steady([]float64{100, 110, 120}))
	require.False(t, Steady([]float64{100, 110, 121}))
	require.False(t, Steady([]float64{0, 1}))
	require.True(t, Steady([]float64{5}))
	require.True(t, Steady(nil))
}

func TestPercentile(t *testing.T) {
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(100-i))
	}
	require.Equal(t, time.Duration(50), Percentile(all, 0.5))
	require.Equal(t, time.Duration(99), Percentile(all, 0.99))
	require.Equal(t, time.Duration(100), Percentile(all, 1))
	require.Equal(t, time.Duration(1), Percentile(all, 0))
	require.Zero(t, Percentile(nil, 0.5))
}

func TestRoundLeavesFiveDigits(t *testing.T) {
	for in, want := range map[float64]float64{123456: 123460, 0.123456: 0.12346, 9.999999: 10, -123456: -123460, 0: 0, math.Inf(1): 0} {
		require.InDelta(t, want, Round(in), 1e-9)
	}
}
