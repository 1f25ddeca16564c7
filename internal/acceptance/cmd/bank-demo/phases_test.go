// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// ms is n milliseconds.
func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// TestAGapIsATimeInWhichSomebodyWaits goes through the ways in which requests
// to one account may overlap.
func TestAGapIsATimeInWhichSomebodyWaits(t *testing.T) {
	tests := []struct {
		name  string
		spans []span
		want  []gap
	}{
		{"one request", []span{{"a", ms(10), ms(15)}}, []gap{{"a", ms(10), ms(15)}}},
		{"nobody waits between two requests", []span{{"a", 0, ms(5)}, {"a", ms(900), ms(910)}}, []gap{{"a", 0, ms(5)}, {"a", ms(900), ms(910)}}},
		{
			"an answer ends the gap of a request that waits on",
			[]span{{"a", 0, ms(100)}, {"a", ms(40), ms(60)}},
			[]gap{{"a", 0, ms(60)}, {"a", ms(60), ms(100)}},
		},
		{"two requests wait for one answer", []span{{"a", 0, ms(100)}, {"a", ms(10), ms(101)}}, []gap{{"a", 0, ms(100)}, {"a", ms(100), ms(101)}}},
		{"a request is never answered", []span{{"a", ms(10), noAnswer}, {"a", ms(20), ms(30)}}, []gap{{"a", ms(10), ms(30)}, {"a", ms(30), ms(1000)}}},
		{"two accounts", []span{{"b", 0, ms(50)}, {"a", ms(10), ms(20)}}, []gap{{"a", ms(10), ms(20)}, {"b", 0, ms(50)}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, gaps(tt.spans, ms(1000))) })
	}
}

// TestGapsAgainstTheirDefinition compares the longest gap with the definition itself: it
// goes through the time of one account in milliseconds, and counts for how long somebody
// has waited since the last answer.
func TestGapsAgainstTheirDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var spans []span
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			from := rapid.IntRange(0, 99).Draw(t, "from")
			spans = append(spans, span{"a", ms(from), ms(rapid.IntRange(from+1, 100).Draw(t, "to"))})
		}
		want, run := 0, 0
		for now := range 100 { // The millisecond from now to now + 1.
			waiting, answered := false, false
			for _, s := range spans {
				waiting = waiting || (s.from <= ms(now) && ms(now) < s.to)
				answered = answered || s.to == ms(now)
			}
			if answered || !waiting {
				run = 0
			}
			if waiting {
				run++
			}
			want = max(want, run)
		}
		got := time.Duration(0)
		for _, g := range gaps(spans, ms(100)) {
			got = max(got, g.length())
		}
		require.Equal(t, ms(want), got)
	})
}

// TestAGapBelongsToThePhaseInWhichMostOfItLies counts gaps that begin in one phase and end
// in the next.
func TestAGapBelongsToThePhaseInWhichMostOfItLies(t *testing.T) {
	windows := []window{{steady, 0, ms(1000)}, {"kill", ms(1000), ms(9000)}, {"join", ms(9000), ms(10_000)}}
	spans := []span{{"a", ms(10), ms(40)}, {"b", ms(900), ms(8000)}, {"c", ms(8900), ms(9500)}, {"d", ms(9990), noAnswer}}
	got := phases(windows, spans, []time.Duration{ms(999), ms(1000), ms(20_000)}, []time.Duration{ms(8999)})
	require.Equal(t, map[string]*phase{
		steady: {Seconds: 1, Answered: 1, LongestGap: 30, FailedAsks: 1},
		"kill": {Seconds: 8, Answered: 1, LongestGap: 7100, FailedAsks: 1, Retried: 1},
		"join": {Seconds: 1, Answered: 1, LongestGap: 600, FailedAsks: 1},
	}, got)
	require.Empty(t, phases(nil, spans, nil, nil))
}

// TestPromisesThatWereNotKept shows that each promise that a phase did not keep is named.
func TestPromisesThatWereNotKept(t *testing.T) {
	require.Empty(t, missed(map[string]*phase{
		steady: {LongestGap: 99_999}, string(killPlain): {LongestGap: 9999, FailedAsks: 5},
		string(restartAll): {LongestGap: 499, Retried: 5}, string(freezeOne): {LongestGap: 10_999, FailedAsks: 9}, string(leaveOne): {LongestGap: 99_999, FailedAsks: 9},
	}, false))
	require.Equal(t, []string{
		"kill: longest gap 10000 ms, not below 10000",
		"rolling_restart: longest gap 500 ms, not below 500",
		"rolling_restart: 1 failed asks",
		"steady: 2 failed asks",
	}, missed(map[string]*phase{
		steady: {FailedAsks: 2}, string(killPlain): {LongestGap: 10_000}, string(restartAll): {LongestGap: 500, FailedAsks: 1},
	}, false))
}

// TestPhasesFollowEachOther enters phases as a run does, and reads the last line
// and the list of gaps.
func TestPhasesFollowEachOther(t *testing.T) {
	d := &demo{load: newLoad(1, 10, 200, &nodeProcesses{})}
	d.closeWindow() // A run may end before its first phase.
	require.Empty(t, d.windows)
	d.enter(steady)
	d.enter(string(restartAll))
	d.closeWindow()
	d.closeWindow()
	require.Len(t, d.windows, 2)
	require.Equal(t, d.windows[0].to, d.windows[1].from)
	require.Less(t, d.windows[1].to, time.Minute)

	d.windows[1].to = ms(2000)
	d.load.spans = []span{{"acct-0001", ms(1000), ms(1400)}, {"acct-0002", ms(1000), ms(1010)}}
	d.load.failed = []failure{{ms(1200), "n3", "503"}}
	d.load.begun = time.Now().Add(-3 * time.Second)
	line, err := json.Marshal(verdict{Phases: d.load.phases(d.windows)})
	require.NoError(t, err)
	require.Contains(t, string(line), `"rolling_restart":{"seconds":2,"answered":2,"longest_gap_ms":400,"failed_asks":1,"retried":0}`)
	path := filepath.Join(t.TempDir(), "gaps.log")
	require.NoError(t, d.writeGaps(path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "gap of acct-0001: 400 ms")
	require.NotContains(t, string(text), "acct-0002")
	require.Contains(t, string(text), "failed ask, says n3: 503")
}
