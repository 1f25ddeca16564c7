// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package asking_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/asking"
)

// Answers find those who asked, in whatever order they come. One for which nobody waits, or a second one, is dropped.
func TestAnswersFindWhoAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q asking.Questions[string]
		type result struct {
			answer string
			ok     bool
		}
		ask := func() (number uint64, done <-chan result) {
			numbers, results := make(chan uint64, 1), make(chan result, 1)
			go func() {
				answer, ok := q.Ask(t.Context(), nil, func(n uint64) error { numbers <- n; return nil })
				results <- result{answer, ok}
			}()
			return <-numbers, results
		}
		one, first := ask()
		two, second := ask()
		require.NotEqual(t, one, two)
		q.Answer(two, "two")
		q.Answer(two, "again")
		q.Answer(two+1, "nobody asked")
		q.Answer(one, "one")
		require.Equal(t, result{"one", true}, <-first)
		require.Equal(t, result{"two", true}, <-second)
		q.Answer(one, "late")
	})
}

// An answer that comes while the question is put counts.
func TestAnAnswerMayComeAtOnce(t *testing.T) {
	var q asking.Questions[int]
	answer, ok := q.Ask(t.Context(), nil, func(n uint64) error { q.Answer(n, 7); return nil })
	require.True(t, ok)
	require.Equal(t, 7, answer)
}

// Nobody waits for what cannot come any more.
func TestQuestionsWithoutAnAnswer(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	over := make(chan struct{})
	close(over)
	put := func(uint64) error { return nil }
	var q asking.Questions[int]
	for name, ask := range map[string]func() (int, bool){
		"it cannot be put": func() (int, bool) {
			return q.Ask(t.Context(), nil, func(uint64) error { return errors.New("full") })
		},
		"the context ends":   func() (int, bool) { return q.Ask(ended, nil, put) },
		"the node has ended": func() (int, bool) { return q.Ask(t.Context(), over, put) },
	} {
		_, ok := ask()
		require.False(t, ok, name)
	}
}

// A pause takes its time, or ends with the context, for the reason that this gives.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, gone := time.Now(), errors.New("gone")
		require.NoError(t, asking.Pause(t.Context(), time.Second))
		require.Equal(t, time.Second, time.Since(begun))
		ctx, end := context.WithCancelCause(t.Context())
		end(gone)
		require.ErrorIs(t, asking.Pause(ctx, time.Hour), gone)
		require.Equal(t, time.Second, time.Since(begun))
	})
}
