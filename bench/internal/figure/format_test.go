// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rate returns the outcomes of runs with the given rates.
func rate(values ...float64) (all []Outcome) {
	for _, v := range values {
		all = append(all, Outcome{Values: map[string]float64{"rate": v}})
	}
	return all
}

// rated is a figure of a rate.
func rated(name string, target float64, floors ...string) Figure {
	return Figure{Name: name, Value: "rate", Unit: "msg/s", Better: Higher, Target: target, Floors: floors}
}

// A line is one object, and has all that a record knows.
func TestLinesAreJSON(t *testing.T) {
	outcomes := rate(10, 30, 20)
	outcomes[0].Values["stall"], outcomes[1].CPU, outcomes[2].Note = 4, 3, "slow"
	records := Summarize("g", []Runs{{Figures: []Figure{rated("f", 25)}, Outcomes: outcomes}})
	var out bytes.Buffer
	require.NoError(t, Lines(&out, records))
	require.JSONEq(t, `{"name": "g/f", "unit": "msg/s", "value": 20, "min": 10, "max": 30, "runs": 3, "better": "higher",
		"values": [10, 30, 20], "stall_ms": 4, "target": 25, "met": false, "lost": 0, "out_of_order": 0, "duplicated": 0, "notes": ["slow"]}`, out.String())
	var again Record
	require.NoError(t, json.Unmarshal(out.Bytes(), &again))
	require.Equal(t, records[0], again)
}

// A figure whose floor was not measured has no ratio, and a figure that was not measured
// has no record.
func TestWhatWasNotMeasuredIsLeftOut(t *testing.T) {
	records := Summarize("g", []Runs{
		{Figures: []Figure{rated("floor", 0)}, Floor: true},
		{Figures: []Figure{rated("second", 0)}, Floor: true, Outcomes: rate(50)},
		{Figures: []Figure{rated("figure", 0, "floor", "second")}, Outcomes: rate(100)},
	})
	require.Len(t, records, 2)
	require.Equal(t, "g/figure", records[1].Name)
	require.Empty(t, records[1].Floor, "the first floor counts, and no other in its place")
	require.Equal(t, map[string]float64{"g/second": 2}, records[1].Ratios)
}

// The note of an experiment with several figures is printed once.
func TestANoteIsSaidOnce(t *testing.T) {
	outcomes := rate(1, 1)
	outcomes[0].Note, outcomes[1].Note = "same", "same"
	records := Summarize("g", []Runs{{Figures: []Figure{{Name: "a", Value: "rate"}, {Name: "b", Value: "rate"}}, Outcomes: outcomes}})
	require.Equal(t, []string{"same"}, records[0].Notes)
	require.Empty(t, records[1].Notes)
}

func TestShortNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 7: "7", 0.123: "0.12", 99.5: "99.50", 100.4: "100", 9999: "9999", 12_345: "12k", 1_234_567: "1.23M", 999_400_000: "999M", 999_600_000: "1000M", 1_234_567_890: "1235M", -0.5: "-0.50",
	} {
		require.Equal(t, want, short(v))
	}
}

// Without a terminal each run is a line of its own, with what was found wrong.
func TestProgressIsALineForEachRun(t *testing.T) {
	var out strings.Builder
	p := NewProgress(&out)
	p.Begin("run %d of %d", 1, 3)
	require.Empty(t, out.String())
	p.End([]Figure{{Value: "rate", Unit: "msg/s"}}, Outcome{Values: map[string]float64{"rate": 2}, Lost: 4})
	p.Clear()
	require.Equal(t, "run 1 of 3  rate=2msg/s  lost=4 out-of-order=0 duplicated=0\n", out.String())
}

func TestCorrect(t *testing.T) {
	require.True(t, Outcome{}.Correct())
	for _, wrong := range []Outcome{{Lost: 1}, {OutOfOrder: 1}, {Duplicated: 1}} {
		require.False(t, wrong.Correct())
	}
}
