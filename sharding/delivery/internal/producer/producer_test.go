// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package producer_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/delivery/internal/producer"
)

// An outbox by itself; package delivery has it simulated under faults.

var session = producer.Session{1}

func newOutbox() *producer.Outbox[int] {
	cfg := producer.Config{
		Messages: 100, Bytes: 1000, PerEntity: 10, Frame: 5, FrameBytes: 100, Calls: 2,
		RetryMin: time.Second, RetryMax: 20 * time.Second,
	}
	return producer.New[int](cfg, session, rand.New(rand.NewPCG(1, 2)))
}

// put puts messages of a size that have room, and returns how many had.
func put(o *producer.Outbox[int], to string, n, bytes int) (had int) {
	for range n {
		number, ok := o.Reserve(to, bytes)
		if !ok {
			break
		}
		o.Put(to, number, 0, bytes)
		had++
	}
	return had
}

// next returns the numbers of the next frame.
func next(t *testing.T, o *producer.Outbox[int], now time.Duration) (to string, numbers []uint64) {
	t.Helper()
	f, ok := o.Next(now)
	require.True(t, ok)
	for _, m := range f.Messages {
		require.Equal(t, f.Session, m.Session)
		numbers = append(numbers, m.Number)
	}
	return f.To, numbers
}

func confirmed(number uint64, demand int) producer.Answer {
	return producer.Answer{Session: session, Confirmed: number, Demand: demand}
}

// Frames follow the demand, and the bounds of a frame.
func TestFrames(t *testing.T) {
	o := newOutbox()
	require.Equal(t, 10, put(o, "a", 11, 10))
	_, numbers := next(t, o, 0)
	require.Equal(t, []uint64{1}, numbers)
	require.Zero(t, o.Answered(0, "a", confirmed(1, 3)))
	_, numbers = next(t, o, 0)
	require.Equal(t, []uint64{2, 3, 4}, numbers)
	messages, err := o.Confirms("a", confirmed(3, 100))
	require.NoError(t, err)
	require.Len(t, messages, 2)
	require.Zero(t, o.Answered(0, "a", confirmed(3, 100)))
	_, numbers = next(t, o, 0)
	require.Equal(t, []uint64{4, 5, 6, 7, 8}, numbers, "the demand is above what a frame may have")
	require.Equal(t, 1, o.Answered(0, "a", confirmed(8, 0)))
	_, ok := o.Next(0)
	require.False(t, ok, "the entity allows none")
	at, ok := o.Wake()
	require.True(t, ok)
	_, numbers = next(t, o, at)
	require.Empty(t, numbers)
	o.Answered(at, "a", confirmed(0, 1))
	_, numbers = next(t, o, at)
	require.Equal(t, []uint64{9}, numbers)
	o.Answered(at, "a", confirmed(9, 100))
	require.Equal(t, 1, put(o, "a", 1, 99))
	_, numbers = next(t, o, at)
	require.Equal(t, []uint64{10}, numbers, "the next one would be too many bytes")
}

// Answers that confirm what their frame has not.
func TestNonsense(t *testing.T) {
	for name, a := range map[string]producer.Answer{
		"beyond the frame": confirmed(3, 5), "another entity's": confirmed(2, 5), "beyond everything": confirmed(1<<63, 5),
		"another session": {Session: producer.Session{2}, Confirmed: 1, Demand: 5},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOutbox()
			put(o, "a", 1, 1)
			put(o, "b", 1, 1)
			put(o, "a", 1, 1)
			next(t, o, 0)
			_, err := o.Confirms("a", a)
			require.ErrorIs(t, err, producer.ErrNonsense)
			require.Equal(t, 1, o.Answered(0, "a", a))
			require.Equal(t, 3, o.Held())
		})
	}
}

// The pause doubles from the one bound to the other, less a part of up to a half, and begins anew with a
// success.
func TestPauses(t *testing.T) {
	o := newOutbox()
	put(o, "a", 2, 1)
	now, want := time.Duration(0), time.Second
	for attempt := range 70 {
		next(t, o, now)
		require.Equal(t, attempt+1, o.Unanswered(now, "a"))
		require.Equal(t, 1, o.Paused())
		at, ok := o.Wake()
		require.True(t, ok)
		require.GreaterOrEqual(t, at-now, want/2)
		require.LessOrEqual(t, at-now, want)
		_, ok = o.Next(at - 1)
		require.False(t, ok)
		now, want = at, min(2*want, 20*time.Second)
	}
	next(t, o, now)
	require.Zero(t, o.Answered(now, "a", confirmed(1, 5)))
	next(t, o, now)
	o.Unanswered(now, "a")
	at, _ := o.Wake()
	require.LessOrEqual(t, at-now, time.Second)
}

// An answer without progress is followed by a pause too, so that no entity is asked without end.
func TestAnAnswerWithoutProgress(t *testing.T) {
	o := newOutbox()
	put(o, "a", 1, 1)
	next(t, o, 0)
	require.Equal(t, 1, o.Answered(0, "a", confirmed(0, 5)))
	_, ok := o.Next(0)
	require.False(t, ok)
}

// What is held is bounded in all, by entity and in bytes, and so are calls.
func TestBounds(t *testing.T) {
	o := newOutbox()
	for i := range 10 {
		require.Equal(t, 10, put(o, fmt.Sprint(i), 11, 1))
	}
	require.Zero(t, put(o, "more", 1, 1))
	next(t, o, 0)
	next(t, o, 0)
	_, ok := o.Next(0)
	require.False(t, ok, "two calls are under way")
	_, ok = o.Wake()
	require.False(t, ok)
	o.Answered(0, "0", confirmed(1, 5))
	require.Equal(t, 1, put(o, "more", 2, 1))
	next(t, o, 0)

	o = newOutbox()
	require.Equal(t, 1, put(o, "a", 2, 5000), "one of any size")
	require.Zero(t, put(o, "b", 1, 1))
	o = newOutbox()
	require.Equal(t, 2, put(o, "a", 5, 400))
	number, ok := o.Reserve("b", 200)
	require.True(t, ok)
	require.Equal(t, uint64(3), number)
	require.Zero(t, put(o, "c", 1, 1))
	o.Cancel("b", 200)
	require.Equal(t, 2, o.Held())
	number, ok = o.Reserve("b", 200)
	require.True(t, ok)
	require.Equal(t, uint64(4), number, "no number is given twice")
}

// What was restored comes first, in frames of its own.
func TestRestored(t *testing.T) {
	o := newOutbox()
	for n := range uint64(20) {
		o.Restore("a", producer.Message[int]{Session: producer.Session{9}, Number: n + 100, Bytes: 1})
	}
	require.Zero(t, put(o, "a", 1, 1))
	require.Equal(t, 1, put(o, "b", 1, 1))
	for n := range uint64(15) {
		to, numbers := next(t, o, 0)
		require.Equal(t, "a", to)
		require.Equal(t, []uint64{n + 100}, numbers)
		if n == 0 {
			to, _ = next(t, o, 0)
			require.Equal(t, "b", to)
		}
		o.Answered(0, "a", producer.Answer{Session: producer.Session{9}, Confirmed: n + 100, Demand: 1})
	}
	require.Equal(t, 1, put(o, "a", 1, 1))
	next(t, o, 0)
	o.Answered(0, "a", producer.Answer{Session: producer.Session{9}, Confirmed: 115, Demand: 100})
	_, numbers := next(t, o, 0)
	require.Equal(t, []uint64{116, 117, 118, 119}, numbers)
}
