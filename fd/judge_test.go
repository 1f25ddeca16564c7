// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/fd"
)

func newJudge(t testing.TB) *fd.DetectorJudge {
	t.Helper()
	factory, err := fd.NewFactory(fd.Default())
	require.NoError(t, err)
	return fd.NewDetectorJudge(factory)
}

func TestVerdictsAreChecked(t *testing.T) {
	b := fd.Batch{Number: 3, Subjects: []fd.Subject{{ID: "a", Available: true}, {ID: "b"}}}
	require.NoError(t, fd.Verdicts{Number: 3}.Check(b))
	require.NoError(t, fd.Verdicts{Number: 3, Changes: []fd.Verdict{
		{ID: "a", Reason: "silent"}, {ID: "b", Available: true, Reason: "back"},
	}}.Check(b))
	for _, tc := range []struct {
		name     string
		verdicts fd.Verdicts
		message  string
	}{
		{"number", fd.Verdicts{Number: 2}, "number 2 answers batch 3"},
		{"stranger", fd.Verdicts{Number: 3, Changes: []fd.Verdict{{ID: "x", Reason: "r"}}}, `"x" is not in the batch`},
		{"twice", fd.Verdicts{Number: 3, Changes: []fd.Verdict{
			{ID: "a", Reason: "r"}, {ID: "a", Reason: "r"},
		}}, `"a" is named twice`},
		{"no change", fd.Verdicts{Number: 3, Changes: []fd.Verdict{{ID: "b", Reason: "r"}}}, "already"},
		{"no reason", fd.Verdicts{Number: 3, Changes: []fd.Verdict{{ID: "a"}}}, "no reason"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.verdicts.Check(b)
			require.ErrorIs(t, err, fd.ErrBadVerdicts)
			require.ErrorContains(t, err, tc.message)
		})
	}
}

func TestDetectorJudgeTellsChanges(t *testing.T) {
	j := newJudge(t)
	answer, err := j.Judge(t.Context(), fd.Batch{Number: 1, Subjects: []fd.Subject{
		{ID: "a", Available: true, Ages: []time.Duration{time.Second, 0}},
		{ID: "b", Available: false, Ages: []time.Duration{0}},
	}})
	require.NoError(t, err)
	require.Len(t, answer.Changes, 1)
	require.Equal(t, "b", answer.Changes[0].ID)
	require.True(t, answer.Changes[0].Available)
	require.NotEmpty(t, answer.Changes[0].Reason)

	answer, err = j.Judge(t.Context(), fd.Batch{Number: 2, Elapsed: 20 * time.Second, Subjects: []fd.Subject{
		{ID: "a", Available: true}, {ID: "b", Available: true, Ages: []time.Duration{0}},
	}})
	require.NoError(t, err)
	require.Len(t, answer.Changes, 1)
	require.Equal(t, "a", answer.Changes[0].ID)
	require.Contains(t, answer.Changes[0].Reason, "phi is")
}

func TestDetectorJudgeRefusesWhatItCannotFollow(t *testing.T) {
	j := newJudge(t)
	_, err := j.Judge(t.Context(), fd.Batch{Number: 2})
	require.ErrorIs(t, err, fd.ErrOutOfStep)
	_, err = j.Judge(t.Context(), fd.Batch{})
	require.ErrorIs(t, err, fd.ErrOutOfStep)
	_, err = j.Judge(t.Context(), fd.Batch{Number: 1})
	require.NoError(t, err)
	_, err = j.Judge(t.Context(), fd.Batch{Number: 3})
	require.ErrorIs(t, err, fd.ErrOutOfStep)
	for name, b := range map[string]fd.Batch{
		"elapsed":        {Number: 2, Elapsed: -1},
		"elapsed, first": {Number: 1, Elapsed: 1},
		"no id":          {Number: 2, Subjects: []fd.Subject{{}}},
		"twice":          {Number: 2, Subjects: []fd.Subject{{ID: "a"}, {ID: "a"}}},
		"future":         {Number: 2, Subjects: []fd.Subject{{ID: "a", Ages: []time.Duration{-1}}}},
		"rising":         {Number: 2, Subjects: []fd.Subject{{ID: "a", Ages: []time.Duration{1, 2}}}},
	} {
		_, err := j.Judge(t.Context(), b)
		require.ErrorIs(t, err, fd.ErrBadBatch, name)
	}
	_, err = j.Judge(t.Context(), fd.Batch{Number: 2})
	require.NoError(t, err, "a refused batch has changed nothing")
}

func TestDetectorJudgeGivesAReasonForADetectorWithoutPhi(t *testing.T) {
	j := fd.NewDetectorJudge(func() fd.Detector {
		d, err := fd.NewDeadline(time.Second)
		require.NoError(t, err)
		return d
	})
	answer, err := j.Judge(t.Context(), fd.Batch{Number: 1, Subjects: []fd.Subject{
		{ID: "a", Available: true, Ages: []time.Duration{time.Minute}}, {ID: "b", Ages: []time.Duration{0}},
	}})
	require.NoError(t, err)
	require.Equal(t, []fd.Verdict{
		{ID: "a", Reason: "no answer arrived for too long"},
		{ID: "b", Available: true, Reason: "answers arrive"},
	}, answer.Changes)
}

// Batches of any length lead to the verdicts of a detector that is told each answer at
// once, and the answers pass their own check.
func TestDetectorJudgeAgreesWithADetector(t *testing.T) {
	factory, err := fd.NewFactory(fd.Default())
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		j, d := fd.NewDetectorJudge(factory), factory()
		now, available := start, true
		for number := range uint64(rapid.IntRange(1, 20).Draw(t, "batches")) {
			b := fd.Batch{Number: number + 1, Subjects: []fd.Subject{{ID: "a", Available: available}}}
			if number > 0 {
				b.Elapsed = time.Duration(rapid.Int64Range(0, int64(8*time.Second)).Draw(t, "elapsed"))
			}
			now = now.Add(b.Elapsed)
			age := b.Elapsed
			for range rapid.IntRange(0, 3).Draw(t, "answers") {
				age = time.Duration(rapid.Int64Range(0, int64(age)).Draw(t, "age"))
				b.Subjects[0].Ages = append(b.Subjects[0].Ages, age)
				d.Heartbeat(now.Add(-age))
			}
			answer, err := j.Judge(t.Context(), b)
			require.NoError(t, err)
			require.NoError(t, answer.Check(b))
			for _, change := range answer.Changes {
				available = change.Available
			}
			require.Equal(t, d.Available(now), available)
		}
	})
}
