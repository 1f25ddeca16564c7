// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fdtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fd"
)

func builtIn(t *testing.T) fd.Judge {
	t.Helper()
	factory, err := fd.NewFactory(fd.Default())
	require.NoError(t, err)
	return fd.NewDetectorJudge(factory)
}

// always is a judge with one opinion of all nodes.
func always(available bool) judgeFunc {
	return func(_ context.Context, b fd.Batch) (fd.Verdicts, error) {
		v := fd.Verdicts{Number: b.Number}
		for _, s := range b.Subjects {
			if s.Available != available {
				v.Changes = append(v.Changes, fd.Verdict{ID: s.ID, Available: available, Reason: "always"})
			}
		}
		return v, nil
	}
}

// The figures of a judge lie between those of one that suspects as soon as it may and of one
// that never suspects; the bounds of silence hold for all.
func TestFigures(t *testing.T) {
	bounds := fd.Default().Bounds()
	for _, trace := range Traces(1) {
		phi, err := Measure(t.Context(), builtIn(t), trace)
		require.NoError(t, err)
		eager, err := Measure(t.Context(), always(false), trace)
		require.NoError(t, err)
		never, err := Measure(t.Context(), always(true), trace)
		require.NoError(t, err)
		t.Logf("%-8s phi %+v, eager %+v, never %+v", trace.Name, phi, eager, never)
		require.LessOrEqual(t, phi.False, eager.False)
		require.LessOrEqual(t, eager.Detection, phi.Detection)
		require.LessOrEqual(t, phi.Detection, never.Detection)
		require.LessOrEqual(t, never.Detection, bounds.MaxSilence+interval)
		require.Equal(t, trace, Traces(1)[indexOf(trace.Name)], "a trace is a function of its seed")
	}
}

func indexOf(name string) int {
	for i, t := range Traces(2) {
		if t.Name == name {
			return i
		}
	}
	return -1
}

// A judge that marks a node in each pause, and takes that back, is seen with every mark.
func TestFalseMarksAreCounted(t *testing.T) {
	trace := Trace{Name: "three pauses", Death: 100 * time.Second}
	for at := time.Second; at <= trace.Death; at += time.Second {
		if at%(30*time.Second) > 8*time.Second {
			trace.Answers = append(trace.Answers, at)
		}
	}
	eager, err := Measure(t.Context(), always(false), trace)
	require.NoError(t, err)
	require.Equal(t, 3, eager.False)
	require.Positive(t, eager.Wrongly)
}

func TestAJudgeThatFailsIsNotMeasured(t *testing.T) {
	broken := errors.New("no idea")
	_, err := Measure(t.Context(), judgeFunc(func(context.Context, fd.Batch) (fd.Verdicts, error) { return fd.Verdicts{}, broken }), Traces(1)[0])
	require.ErrorIs(t, err, broken)
	_, err = Measure(t.Context(), judgeFunc(func(context.Context, fd.Batch) (fd.Verdicts, error) { return fd.Verdicts{Number: 7}, nil }), Traces(1)[0])
	require.Error(t, err, "the answer is to another batch")
}

func TestReadTrace(t *testing.T) {
	trace, err := ReadTrace("rack 7", strings.NewReader("# measured\n1.0\n2.5\n\n3.25\n9\n"))
	require.NoError(t, err)
	require.Equal(t, Trace{
		Name: "rack 7", Answers: []time.Duration{time.Second, 2500 * time.Millisecond, 3250 * time.Millisecond}, Death: 9 * time.Second,
	}, trace)
	for text, want := range map[string]string{
		"":         "one answer and of the death",
		"1":        "one answer and of the death",
		"2\n1\n":   "line 2: 1 is before",
		"1\nNaN\n": `line 2: "NaN" is no number`,
		"-1\n2":    `line 1: "-1" is no number`,
		"1\n1e300": `line 2: "1e300" is no number`,
		"1\nsoon":  `line 2: "soon" is no number`,
		"5\n1e8":   "line 2: 1e8 is more than 288h0m0s after the first line",
	} {
		_, err := ReadTrace("rack 7", strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add("1\n2.5\n3\n")
	f.Add("# none\n0\n0\n")
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := ReadTrace("fuzz", strings.NewReader(text))
		if err != nil || trace.Death > time.Hour {
			return
		}
		if _, err := Measure(t.Context(), always(true), trace); err != nil {
			t.Fatal(err)
		}
	})
}
