// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/bench/internal/harness"
)

// An entity that lives on two nodes at a time is found, and one that did at some time. An
// entity that moved is not.
func TestDoubles(t *testing.T) {
	now, ever, example := doubles([][]entitySpan{
		{{"moved", 10, 20}, {"was", 10, 30}, {"is", 10, 0}, {"stayed", 10, 0}},
		{{"moved", 20, 0}, {"was", 29, 0}, {"is", 40, 0}},
	})
	require.Equal(t, 1, now)
	require.Equal(t, 2, ever)
	require.Contains(t, example, "lived on node 0 from 10 to ")
}

// A cluster is measured once every entity has answered, whichever was the last to do so.
func TestAnEntityThatHasNotAnsweredIsWaitedFor(t *testing.T) {
	now := time.Now()
	for silent := range 3 {
		w := &watches{each: []*watch{{asked: now}, {asked: now}, {asked: now}}}
		require.Equal(t, now, w.summary(false).oldest)
		w.each[silent].asked = time.Time{}
		require.Zero(t, w.summary(false).oldest, "entity %d is silent", silent)
	}
}

// Two spans overlap when there is a moment that lies in both; here each moment is
// tried.
func TestOverlapsAgreesWithEachMoment(t *testing.T) {
	const horizon = 12
	draw := func(t *rapid.T, label string) entitySpan {
		from := rapid.Int64Range(1, horizon-1).Draw(t, label+" from")
		to := rapid.Int64Range(from, horizon).Draw(t, label+" to")
		if to == horizon {
			to = 0 // The span has not ended.
		}
		return entitySpan{Entity: "e", From: from, To: to}
	}
	in := func(s entitySpan, moment int64) bool { return s.From <= moment && (s.To == 0 || moment < s.To) }
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "a"), draw(t, "b")
		if a.From == a.To || b.From == b.To {
			return // A span of no length has no moment.
		}
		want := false
		for moment := range int64(horizon + 1) {
			want = want || in(a, moment) && in(b, moment)
		}
		if got := overlaps(a, b); got != want || overlaps(b, a) != got {
			t.Fatalf("%v and %v: %v, want %v", a, b, got, want)
		}
	})
}

// A watch keeps the longest time between two answers, the number of errors, and the
// first of these.
func TestAWatchKeepsWhatACallerNotices(t *testing.T) {
	one := new(watch)
	w := watches{each: []*watch{one, new(watch)}}
	began := time.Now()
	one.note(began, &harness.Message{Payload: []byte("a")}, nil)
	one.answered = one.answered.Add(-time.Minute) // The first answer is a minute old.
	one.note(began.Add(time.Second), &harness.Message{Payload: []byte("b")}, nil)
	one.note(began, nil, errors.New("first"))
	one.note(began, nil, errors.New("second"))
	s := w.summary(true)
	require.Equal(t, []string{"b", ""}, s.hosts)
	require.GreaterOrEqual(t, s.longest, time.Minute)
	require.Equal(t, s.longest, s.longestOf([]string{"a", "c"}, func(host string) bool { return host == "a" }))
	require.Zero(t, s.longestOf([]string{"a", "c"}, func(host string) bool { return host == "c" }))
	require.ErrorContains(t, s.cause, "first")
	require.Equal(t, 2, s.failures([]string{"a", "c"}, func(host string) bool { return host == "a" }))
	require.Zero(t, s.failures([]string{"a", "c"}, func(host string) bool { return host == "c" }))
	require.Equal(t, 1, s.movedFrom([]string{"a", ""}))
	s = w.summary(false)
	require.Less(t, s.longest, time.Minute, "counting began again")
	require.NoError(t, s.cause)
}
