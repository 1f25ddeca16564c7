// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A record stands on its floor: the ratio is that of the medians, and it is
// not stable when the floor is not.
func TestRecords(t *testing.T) {
	outcomes := func(values ...float64) (all []Outcome) {
		for _, v := range values {
			all = append(all, Outcome{Values: map[string]float64{"rate": v}, CPU: 2})
		}
		return all
	}
	g := []Runs{
		{Figures: []Figure{rated("floor", 0)}, Floor: true, Outcomes: outcomes(100, 130, 90)},
		{Figures: []Figure{rated("figure", 45, "floor")}, Outcomes: outcomes(50, 40, 60)},
	}
	records := Summarize("g", g)
	require.Len(t, records, 2)
	require.False(t, *records[0].Stable)
	f := records[1]
	require.Equal(t, "g/figure", f.Name)
	require.InDelta(t, 50, f.Value, 0)
	require.InDelta(t, 0.5, f.Ratio, 0)
	require.InDelta(t, 2, f.CPU, 0)
	require.InDelta(t, 1, f.CPURatio, 0)
	require.Equal(t, "g/floor", f.Floor)
	require.False(t, *f.Stable)
	require.True(t, *f.Met)
	g[1].Figures[0].OfFloor, g[0].Outcomes, g[1].Outcomes = 0.6, outcomes(100), outcomes(50)
	f = Summarize("g", g)[1]
	require.InDelta(t, 60, *f.Target, 0)
	require.False(t, *f.Met)
	require.Nil(t, f.CPUTarget)
	broken := outcomes(1)
	broken[0].Lost, broken[0].Note = 7, "why"
	r := newRecord("g", Figure{Name: "x", Value: "rate", Better: Lower, Zero: true}, broken)
	require.False(t, r.Correct())
	require.False(t, *r.Met)
	once := newRecord("g", Figure{Name: "x", Value: "rate", Better: Lower, Zero: true}, outcomes(0, 0, 1))
	require.Zero(t, once.Value)
	require.False(t, *once.Met, "not in any run")
	var table bytes.Buffer
	Table(&table, append(records, r))
	require.Contains(t, table.String(), "7 lost")
	require.Contains(t, table.String(), "why")
	for line := range strings.Lines(table.String()) {
		require.LessOrEqual(t, len(strings.TrimSpace(line)), 80, "%s", line)
	}
}

// The ratio to each other product is shown, and what such a product has lost is told.
func TestPeersAreComparedWithEach(t *testing.T) {
	one := func(rate float64, lost uint64) []Outcome {
		return []Outcome{{Values: map[string]float64{"rate": rate}, Lost: lost}}
	}
	records := Summarize("g", []Runs{
		{Figures: []Figure{rated("floor", 0)}, Floor: true, Outcomes: one(100, 0)},
		{Figures: []Figure{rated("peer", 0, "floor")}, Floor: true, Peer: true, Outcomes: one(10, 7)},
		{Figures: []Figure{rated("figure", 0, "floor", "peer")}, Outcomes: one(50, 0)},
	})
	require.True(t, records[1].Peer)
	require.False(t, records[2].Peer)
	var table bytes.Buffer
	Table(&table, records)
	_, below, found := strings.Cut(table.String(), "beside")
	require.True(t, found)
	require.Regexp(t, `g/figure +g/peer +5\n`, below)
	require.NotContains(t, below, "g/floor ")
	require.Contains(t, below, "7 lost")
	for line := range strings.Lines(below) {
		require.LessOrEqual(t, len(strings.TrimSpace(line)), 80, "%s", line)
	}
	table.Reset()
	Table(&table, records[:1])
	require.NotContains(t, table.String(), "beside")
}

// The processor time of an operation has a target of its own, and is shown once for an
// experiment that has several figures.
func TestTheProcessorTimeHasATarget(t *testing.T) {
	outcomes := func(cpu float64) []Outcome {
		return []Outcome{{Values: map[string]float64{"rate": 10, "p50": 1}, CPU: cpu}}
	}
	several := func(floor, outcomes []Outcome) []Runs {
		return []Runs{{Figures: []Figure{rated("floor", 0)}, Floor: true, Outcomes: floor}, {Figures: []Figure{
			{Name: "figure", Value: "rate", Better: Higher, CPU: 5, Floors: []string{"floor"}}, {Name: "other", Value: "p50", Better: Lower},
		}, Outcomes: outcomes}}
	}
	for cpu, mark := range map[float64]string{4.5: "+", 5.5: "*"} {
		records := Summarize("g", several(outcomes(0.5), outcomes(cpu)))
		require.InDelta(t, 5, *records[1].CPUTarget, 0)
		require.Equal(t, mark == "+", *records[1].CPUMet)
		require.InDelta(t, cpu/0.5, records[1].CPURatio, 0)
		var table bytes.Buffer
		Table(&table, records)
		_, below, found := strings.Cut(table.String(), "processor time")
		require.True(t, found)
		require.Contains(t, below, "g/floor")
		require.Regexp(t, `g/figure +`+short(cpu)+` +`+short(cpu/0.5)+` +5 \`+mark, below)
		require.NotContains(t, below, "g/other")
		for line := range strings.Lines(below) {
			require.LessOrEqual(t, len(strings.TrimSpace(line)), 80, "%s", line)
		}
	}
	var table bytes.Buffer
	Table(&table, Summarize("g", several(nil, outcomes(0))))
	require.NotContains(t, table.String(), "processor time", "nothing was measured")
}
