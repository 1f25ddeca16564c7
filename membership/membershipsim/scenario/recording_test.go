// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership/membershipsim/scenario"
	"github.com/quorate/quorate/simulation"
)

// recorded runs a scenario and returns what came of it, its trace and the recording.
func recorded(t *testing.T, o scenario.Options) (scenario.Result, string, string) {
	t.Helper()
	var trace, recording strings.Builder
	o.Trace, o.Record = &trace, &recording
	r, err := scenario.Run(o)
	require.NoError(t, err)
	return r, trace.String(), recording.String()
}

// strange returns a run in which strategies answer in time and too late.
func strange(t *testing.T) scenario.Options {
	t.Helper()
	for seed := range uint64(50) {
		o := scenario.Options{Scenario: "strategies", Seed: seed, Nodes: 5, Duration: time.Minute}
		if _, _, recording := recorded(t, o); strings.Contains(recording, `"fate":"late"`) && strings.Contains(recording, `"fate":"answered"`) {
			return o
		}
	}
	require.Fail(t, "no seed has both")
	return scenario.Options{}
}

// A replay is the recorded run to the byte of its trace, and asks nobody.
//
// covers F40, F56, I30, I34.
func TestReplayIsTheRecordedRunAndAsksNobody(t *testing.T) {
	o := strange(t)
	first, trace, recording := recorded(t, o)
	require.NotZero(t, first.Stats.Asked)

	var again strings.Builder
	r, err := scenario.Run(scenario.Options{Replay: strings.NewReader(recording), Trace: &again})
	require.NoError(t, err)
	require.Zero(t, r.Stats.Asked, "nobody was asked")
	r.Stats.Asked = first.Stats.Asked
	require.Equal(t, first, r)
	require.Equal(t, trace, again.String())

	plain, err := scenario.Run(o)
	require.NoError(t, err)
	require.Equal(t, first, plain, "recording changes nothing")
}

func TestReplayOfAViolationIsTheViolation(t *testing.T) {
	var recording bytes.Buffer
	_, err := scenario.Run(scenario.Options{
		Scenario: "steady", Seed: 3, Duration: time.Millisecond, Settle: 100 * time.Millisecond, Record: &recording,
	})
	require.ErrorContains(t, err, "not settled after")
	_, again := scenario.Run(scenario.Options{Replay: &recording})
	require.EqualError(t, again, err.Error())
}

// One answer, one request, one line changed: the replay says where it is another run.
func TestReplayThatDivergesSaysWhere(t *testing.T) {
	_, _, recording := recorded(t, strange(t))
	diverges := func(change func(lines []string) []string, what ...string) {
		t.Helper()
		lines := change(strings.SplitAfter(recording, "\n"))
		_, err := scenario.Run(scenario.Options{Replay: strings.NewReader(strings.Join(lines, ""))})
		var diverged *simulation.DivergenceError
		require.ErrorAs(t, err, &diverged)
		for _, text := range what {
			require.ErrorContains(t, err, text)
		}
		require.LessOrEqual(t, diverged.At-diverged.Since, time.Second, "a second in which it must be")
		require.Contains(t, err.Error(), " sent ", "the end of the trace is there")
	}
	find := func(lines []string, text string) int {
		t.Helper()
		for i, l := range lines {
			if strings.Contains(l, text) && (strings.Contains(l, `"downing"`) || strings.Contains(text, "end")) {
				return i
			}
		}
		require.Fail(t, "no line with", text)
		return 0
	}
	diverges(func(lines []string) []string { // Another answer, which is used.
		i := find(lines, `"fate":"answered"`)
		lines[i] = strings.Replace(lines[i], `"Reason":"`, `"Reason":"the other way: `, 1)
		return lines
	}, "the recording has ", "the replay has ")
	diverges(func(lines []string) []string { // Another question.
		i := find(lines, `"call":`)
		lines[i] = strings.Replace(lines[i], `"request":"`, `"request":"f`, 1)
		return lines
	}, " of downing by membership of n", "request f", "the replay has call ")
	diverges(func(lines []string) []string { // A call that this run does not make.
		i := find(lines, `"call":`)
		return append(lines[:i:i], append([]string{lines[i]}, lines[i:]...)...)
	}, "the recording has call ", "the replay has")
	diverges(func(lines []string) []string { // A call that was not recorded.
		i := find(lines, `"call":`)
		return append(lines[:i:i], lines[i+1:]...)
	}, "the replay has call ", " of downing")
	diverges(func(lines []string) []string { // Another end.
		i := find(lines, `"end":`)
		lines[i] = strings.Replace(lines[i], `"end":{}`, `"end":{"violation":"I4"}`, 1)
		return lines
	}, `the recording has the violation "I4"`, "the replay has the end")
}

func TestOnlyRecordingsAreReplayed(t *testing.T) {
	const begin = `{"recording":1,"scenario":"steady","nodes":3,"seed":1,"duration":0,"settle":0}` + "\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "line 1"},
		{"no line", strings.Repeat("x", 10_000), "line 1"},
		{"garbage", "garbage\n", "line 1"},
		{"another form", `{"recording":2}` + "\n", "its form is 2, want 1"},
		{"another field", `{"recording":1,"colour":"red"}` + "\n", "colour"},
		{"no end", begin, "it has no end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := scenario.Run(scenario.Options{Replay: strings.NewReader(c.text)})
			require.ErrorIs(t, err, simulation.ErrRecording)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := scenario.Run(scenario.Options{Replay: strings.NewReader(
		`{"recording":1,"scenario":"none","nodes":3,"seed":1,"duration":0,"settle":0}` + "\n" +
			`{"at":0,"trace":"0000000000000000","lines":0,"end":{}}` + "\n")})
	require.ErrorIs(t, err, scenario.ErrUnknown)
	_, err = scenario.Run(scenario.Options{Record: failing{}, Scenario: "steady"})
	require.ErrorIs(t, err, errWrite)
}
