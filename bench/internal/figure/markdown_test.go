// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What was measured is on the page, whatever was there before, and the rest of the page stays.
func TestTheTableOfAPage(t *testing.T) {
	records := Summarize("g", []Runs{
		{Figures: []Figure{{Name: "floor", Value: "rate", Unit: "msg/s", Better: Higher}}, Floor: true, Outcomes: outcomesOf([]float64{100, 200}, []float64{2, 2})},
		{
			Figures:  []Figure{{Name: "rate", Value: "rate", Unit: "msg/s", Better: Higher, Floors: []string{"floor"}, Target: 80, CPU: 1}},
			Outcomes: outcomesOf([]float64{90, 60}, []float64{4, 4}),
		},
	})
	var lines bytes.Buffer
	require.NoError(t, Lines(&lines, records))
	read, err := ReadLines(&lines)
	require.NoError(t, err)
	page, err := OnPage([]byte("before\n<!-- the table of b begins -->\nold\n<!-- the table of b ends -->\nafter\n"), "b", "from here", read)
	require.NoError(t, err)
	require.Equal(t, []string{
		"before", "<!-- the table of b begins -->", "", "from here", "",
		"| figure | median | smallest to largest | CPU µs an operation | to its floors | target | |", "| --- | --- | --- | --- | --- | --- | --- |",
		"| g/floor | 150 msg/s | 100 to 200 | 2 |  |  |  ~ |",
		"| g/rate | 75 msg/s | 60 to 90 | 4 | 0.50 of floor | 80 | **missed**, CPU 1 **missed** ~ |",
		"", "<!-- the table of b ends -->", "after", "",
	}, strings.Split(string(page), "\n"))

	again, err := OnPage(page, "b", "from here", read)
	require.NoError(t, err)
	require.Equal(t, string(page), string(again))
	_, err = OnPage([]byte("no marks"), "b", "", nil)
	require.ErrorContains(t, err, "does not have the lines")
	_, err = ReadLines(strings.NewReader(`{"name":"g/f"}` + "\n{"))
	require.ErrorContains(t, err, "record 2")
}
