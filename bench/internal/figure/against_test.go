// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// outcomesOf are runs with a rate and a processor time each.
func outcomesOf(rates, cpus []float64) []Outcome {
	var all []Outcome
	for i, rate := range rates {
		all = append(all, Outcome{Values: map[string]float64{"rate": rate, "gap": 1 / rate}, CPU: cpus[i]})
	}
	return all
}

// A figure is better or worse only if all its runs are.
func TestVerdicts(t *testing.T) {
	figures := []Figure{{Name: "rate", Value: "rate", Unit: "msg/s", Better: Higher}, {Name: "gap", Value: "gap", Unit: "s", Better: Lower}}
	of := func(rates, cpus []float64) []Record {
		return Summarize("g", []Runs{{Figures: figures, Outcomes: outcomesOf(rates, cpus)}})
	}
	other := of([]float64{100, 110, 105}, []float64{5, 6, 7})
	for _, test := range []struct {
		rates, cpus        []float64
		rate, gap, cpuTime Verdict
	}{
		{[]float64{120, 111, 130}, []float64{4, 3, 4}, Better, Better, Better},
		{[]float64{99, 98, 97}, []float64{8, 8, 9}, Worse, Worse, Worse},
		{[]float64{120, 109, 130}, []float64{5, 4, 3}, Same, Same, Same},
	} {
		records := of(test.rates, test.cpus)
		Beside(records, other)
		require.Equal(t, test.rate, records[0].Against.Verdict)
		require.Equal(t, test.gap, records[1].Against.Verdict)
		require.Equal(t, test.cpuTime, records[0].Against.CPUVerdict)
		require.Empty(t, records[1].Against.CPUVerdict, "it is that of the experiment, and said once")
		require.InDelta(t, 105, records[0].Against.Other, 1e-9)
	}
}

func TestTheTableBesideAnotherBuild(t *testing.T) {
	long := Figure{Name: strings.Repeat("n", 40), Value: "rate", Unit: "msg/s", Better: Higher}
	records := Summarize("group", []Runs{{Figures: []Figure{long}, Outcomes: outcomesOf([]float64{3, 4}, []float64{1, 1})}})
	Beside(records, nil)
	var out bytes.Buffer
	BesideTable(&out, records)
	require.Contains(t, out.String(), "absent")
	Beside(records, Summarize("group", []Runs{{Figures: []Figure{long}, Outcomes: outcomesOf([]float64{1, 2}, []float64{2, 2})}}))
	BesideTable(&out, records)
	require.Contains(t, out.String(), "2 better, 0 worse, 0 the same")
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len(strings.TrimRight(line, "\n")), 80, line)
	}
}
