// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/simulation"
)

// answer is an answer with values that JSON could lose.
type answer struct {
	Text  string
	Some  []int
	Inner *answer
}

// run has one node make one call, and returns the answers that were fed.
func run(t *testing.T, o simulation.Options, of any, err error) ([]machine.Input, error) {
	t.Helper()
	w := pingers(o, 1)
	w.Strategies().Recorded(answer{})
	w.Strategies().Answer("any", func(*simulation.Node, any) (any, error) {
		require.Nil(t, o.Replay, "a replay asks nobody")
		return of, err
	})
	w.Input(address(0), service, machine.Call{ID: 1, Port: "any", Request: "what", Limit: time.Second})
	if err := w.Run(2 * time.Second); err != nil {
		return nil, err
	}
	return machineOf(w, 0).fed, w.Conclude()
}

func TestAnswersAreRecordedAsTheyAre(t *testing.T) {
	for _, of := range []any{
		nil, "text", "<&>\u2028", 7, 1 << 62, false, uint64(1<<64 - 1),
		answer{},
		answer{Some: []int{}},
		answer{Text: "a", Some: []int{1}, Inner: &answer{Text: "b"}},
	} {
		var recording strings.Builder
		fed, err := run(t, simulation.Options{Record: &recording}, of, nil)
		require.NoError(t, err)
		r, err := simulation.ReadRecording(strings.NewReader(recording.String()))
		require.NoError(t, err)
		require.Equal(t, 1, r.Calls())
		again, err := run(t, simulation.Options{Replay: r}, nil, nil)
		require.NoError(t, err)
		require.Equal(t, fed, again)
		require.Equal(t, []machine.Input{machine.Called{ID: 1, Result: of}}, again)
	}
}

func TestErrorsAreRecordedWithWhatTheyAre(t *testing.T) {
	for _, of := range []error{simulation.ErrUnavailable, errors.New("no\nidea")} {
		var recording strings.Builder
		_, err := run(t, simulation.Options{Record: &recording}, nil, of)
		require.NoError(t, err)
		r, err := simulation.ReadRecording(strings.NewReader(recording.String()))
		require.NoError(t, err)
		fed, err := run(t, simulation.Options{Replay: r}, nil, nil)
		require.NoError(t, err)
		require.EqualError(t, fed[0].(machine.Called).Err, of.Error())
		require.Equal(t, errors.Is(of, simulation.ErrUnavailable), errors.Is(fed[0].(machine.Called).Err, simulation.ErrUnavailable))
	}
}

func TestAnswerThatCannotBeRecordedIsAViolation(t *testing.T) {
	for _, c := range []struct {
		of   any
		want string
	}{
		{"\xff", "is read back as"},
		{struct{ X int }{1}, "answers of type struct { X int } are not known"},
		{func() {}, "unsupported type"},
	} {
		var recording strings.Builder
		_, err := run(t, simulation.Options{Record: &recording}, c.of, nil)
		require.ErrorContains(t, err, "an answer of any cannot be recorded")
		require.ErrorContains(t, err, c.want)
	}
}

func TestReplayWithoutTheTypeOfAnAnswerSaysSo(t *testing.T) {
	var recording strings.Builder
	_, err := run(t, simulation.Options{Record: &recording}, answer{}, nil)
	require.NoError(t, err)
	r, err := simulation.ReadRecording(strings.NewReader(strings.ReplaceAll(recording.String(), "simulation_test.answer", "another")))
	require.NoError(t, err)
	_, err = run(t, simulation.Options{Replay: r}, nil, nil)
	require.ErrorIs(t, err, simulation.ErrRecording)
	require.ErrorContains(t, err, "answers of type another are not known")
}

func TestLinesOfARecordingAreChecked(t *testing.T) {
	const (
		second = `{"at":1000000000,"trace":"00000000000000ff","lines":3}`
		end    = `{"at":2000000000,"trace":"00000000000000ff","lines":4,"end":{}}`
	)
	_, err := simulation.ReadRecording(strings.NewReader(second + "\n" + end))
	require.NoError(t, err)
	for _, c := range []struct{ text, want string }{
		{"", "no end"},
		{second, "no end"},
		{"garbage", "line 1"},
		{second + "\n" + `{"at":2,"colour":1}`, "line 2"},
		{end + "\n" + second, "line 2: it is after the end"},
		{strings.Replace(end, `,"end":{}`, "", 1) + "\n" + second, "line 2: it is before the line above it"},
		{strings.Replace(second, "00ff", "00fz", 1), `the hash "00000000000000fz" is not one`},
		{strings.Replace(second, "00ff", "ff", 1), `the hash "000000000000ff" is not one`},
		{strings.Replace(end, `"end"`, `"call":{"answer":1},"end"`, 1), "the answer is before the call"},
		{strings.Replace(end, `"end"`, `"call":{"answer":3000000000},"end"`, 1), "it is a call and the end"},
	} {
		_, err := simulation.ReadRecording(strings.NewReader(c.text))
		require.ErrorIs(t, err, simulation.ErrRecording, c.text)
		require.ErrorContains(t, err, c.want)
	}
}

// covers I36: any content of a file is read or refused.
func FuzzReadRecording(f *testing.F) {
	f.Add(`{"at":1000000000,"trace":"00000000000000ff","lines":3}` + "\n" + `{"at":2000000000,"trace":"00000000000000ff","lines":4,"end":{"violation":"I4"}}`)
	f.Add(`{"at":7,"trace":"51848c84f61116cd","lines":7709,"call":{"node":"n3:7946","life":1,"component":"membership","port":"any","id":1,"request":"9a8b8d7b73429779","fate":"answered","answer":8,"type":"string","value":"x"}}` + "\n")
	f.Add("{}\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := simulation.ReadRecording(strings.NewReader(text))
		if err != nil {
			require.ErrorIs(t, err, simulation.ErrRecording)
			return
		}
		require.LessOrEqual(t, r.Calls(), strings.Count(text, "\n")+1)
		// The replay is another run, and says so.
		_, err = run(t, simulation.Options{Replay: r}, nil, nil)
		require.Error(t, err)
	})
}
