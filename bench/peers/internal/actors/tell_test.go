// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/bench/internal/harness"
)

// Senders wait until enough has arrived, and wait no more for what is lost.
func TestSendersWaitForReceivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var received atomic.Uint64
		w := &window{most: 10, every: time.Millisecond}
		// Owned by the test: ends with cancel, and the bubble waits for it.
		go w.follow(ctx, func(context.Context) (harness.Mark, error) {
			return harness.Mark{Totals: harness.Totals{Received: received.Load()}}, nil
		})
		began := time.Now()
		require.NoError(t, w.room(ctx, 10))
		require.Zero(t, time.Since(began))
		time.AfterFunc(100*time.Millisecond, func() { received.Store(5) })
		require.NoError(t, w.room(ctx, 5))
		require.InDelta(t, 100, harness.Milliseconds(time.Since(began)), 3)
		require.NoError(t, w.room(ctx, 10)) // None of the other ten arrives.
		require.InDelta(t, 1100, harness.Milliseconds(time.Since(began)), 10)
		cancel()
		require.ErrorIs(t, w.room(ctx, 1000), context.Canceled)
	})
}

// What an actor receives is checked, whatever it is, and an answer is held to its question.
func TestMessagesAreChecked(t *testing.T) {
	var found harness.Tally
	r := Receiver(harness.Spec{Senders: 2, Size: 64}, &found)
	require.False(t, Take(r, Value(64, 1, 1)))
	require.True(t, Take(r, Question(64, 1, 2)))
	require.False(t, Take(r, wrapperspb.Bytes([]byte("short"))))
	require.Equal(t, harness.Totals{Received: 2, Damaged: 1}, found.Totals())
	require.NoError(t, Answers(Question(64, 1, 2), 64, 1, 2))
	require.EqualError(t, Answers(Question(64, 1, 3), 64, 1, 2), "the answer is to question 3 of 1, not to 2 of 1")
	require.ErrorContains(t, Answers(Value(32, 1, 2), 64, 1, 2), "of another size")
	require.ErrorContains(t, Answers("no", 64, 1, 2), "a string of another size")
}
