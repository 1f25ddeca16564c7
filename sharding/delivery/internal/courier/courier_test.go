// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package courier_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/delivery/internal/courier"
)

// A courier by itself; package delivery has it simulated under faults.

var session = courier.Session{1}

func newCourier() *courier.Courier[int] {
	cfg := courier.Config{
		Letters: 100, Bytes: 1000, PerEntity: 10, Frame: 5, FrameBytes: 100, Calls: 2,
		RetryMin: time.Second, RetryMax: 20 * time.Second,
	}
	return courier.New[int](cfg, session, rand.New(rand.NewPCG(1, 2)))
}

// put puts letters of a size that have room, and returns how many had.
func put(c *courier.Courier[int], to string, n, bytes int) (had int) {
	for range n {
		number, ok := c.Reserve(to, bytes)
		if !ok {
			break
		}
		c.Put(to, number, 0, bytes)
		had++
	}
	return had
}

// next returns the numbers of the next frame.
func next(t *testing.T, c *courier.Courier[int], now time.Duration) (to string, numbers []uint64) {
	t.Helper()
	f, ok := c.Next(now)
	require.True(t, ok)
	for _, l := range f.Letters {
		require.Equal(t, f.Session, l.Session)
		numbers = append(numbers, l.Number)
	}
	return f.To, numbers
}

func confirmed(number uint64, demand int) courier.Answer {
	return courier.Answer{Session: session, Confirmed: number, Demand: demand}
}

// Frames follow the demand, and the bounds of a frame.
func TestFrames(t *testing.T) {
	c := newCourier()
	require.Equal(t, 10, put(c, "a", 11, 10))
	_, numbers := next(t, c, 0)
	require.Equal(t, []uint64{1}, numbers)
	require.Zero(t, c.Answered(0, "a", confirmed(1, 3)))
	_, numbers = next(t, c, 0)
	require.Equal(t, []uint64{2, 3, 4}, numbers)
	letters, err := c.Confirms("a", confirmed(3, 100))
	require.NoError(t, err)
	require.Len(t, letters, 2)
	require.Zero(t, c.Answered(0, "a", confirmed(3, 100)))
	_, numbers = next(t, c, 0)
	require.Equal(t, []uint64{4, 5, 6, 7, 8}, numbers, "the demand is above what a frame may have")
	require.Equal(t, 1, c.Answered(0, "a", confirmed(8, 0)))
	_, ok := c.Next(0)
	require.False(t, ok, "the entity allows none")
	at, ok := c.Wake()
	require.True(t, ok)
	_, numbers = next(t, c, at)
	require.Empty(t, numbers)
	c.Answered(at, "a", confirmed(0, 1))
	_, numbers = next(t, c, at)
	require.Equal(t, []uint64{9}, numbers)
	c.Answered(at, "a", confirmed(9, 100))
	require.Equal(t, 1, put(c, "a", 1, 99))
	_, numbers = next(t, c, at)
	require.Equal(t, []uint64{10}, numbers, "the next one would be too many bytes")
}

// Answers that confirm what their frame has not.
func TestNonsense(t *testing.T) {
	for name, a := range map[string]courier.Answer{
		"beyond the frame": confirmed(3, 5), "another entity's": confirmed(2, 5), "beyond everything": confirmed(1<<63, 5),
		"another session": {Session: courier.Session{2}, Confirmed: 1, Demand: 5},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCourier()
			put(c, "a", 1, 1)
			put(c, "b", 1, 1)
			put(c, "a", 1, 1)
			next(t, c, 0)
			_, err := c.Confirms("a", a)
			require.ErrorIs(t, err, courier.ErrNonsense)
			require.Equal(t, 1, c.Answered(0, "a", a))
			require.Equal(t, 3, c.Held())
		})
	}
}

// The pause doubles from the one bound to the other, less a part of up to a half, and begins anew with a
// success.
func TestPauses(t *testing.T) {
	c := newCourier()
	put(c, "a", 2, 1)
	now, want := time.Duration(0), time.Second
	for attempt := range 70 {
		next(t, c, now)
		require.Equal(t, attempt+1, c.Unanswered(now, "a"))
		require.Equal(t, 1, c.Paused())
		at, ok := c.Wake()
		require.True(t, ok)
		require.GreaterOrEqual(t, at-now, want/2)
		require.LessOrEqual(t, at-now, want)
		_, ok = c.Next(at - 1)
		require.False(t, ok)
		now, want = at, min(2*want, 20*time.Second)
	}
	next(t, c, now)
	require.Zero(t, c.Answered(now, "a", confirmed(1, 5)))
	next(t, c, now)
	c.Unanswered(now, "a")
	at, _ := c.Wake()
	require.LessOrEqual(t, at-now, time.Second)
}

// An answer without progress is followed by a pause too, so that no entity is asked without end.
func TestAnAnswerWithoutProgress(t *testing.T) {
	c := newCourier()
	put(c, "a", 1, 1)
	next(t, c, 0)
	require.Equal(t, 1, c.Answered(0, "a", confirmed(0, 5)))
	_, ok := c.Next(0)
	require.False(t, ok)
}

// What is held is bounded in all, by entity and in bytes, and so are calls.
func TestBounds(t *testing.T) {
	c := newCourier()
	for i := range 10 {
		require.Equal(t, 10, put(c, fmt.Sprint(i), 11, 1))
	}
	require.Zero(t, put(c, "more", 1, 1))
	next(t, c, 0)
	next(t, c, 0)
	_, ok := c.Next(0)
	require.False(t, ok, "two calls are under way")
	_, ok = c.Wake()
	require.False(t, ok)
	c.Answered(0, "0", confirmed(1, 5))
	require.Equal(t, 1, put(c, "more", 2, 1))
	next(t, c, 0)

	c = newCourier()
	require.Equal(t, 1, put(c, "a", 2, 5000), "one of any size")
	require.Zero(t, put(c, "b", 1, 1))
	c = newCourier()
	require.Equal(t, 2, put(c, "a", 5, 400))
	number, ok := c.Reserve("b", 200)
	require.True(t, ok)
	require.Equal(t, uint64(3), number)
	require.Zero(t, put(c, "c", 1, 1))
	c.Cancel("b", 200)
	require.Equal(t, 2, c.Held())
	number, ok = c.Reserve("b", 200)
	require.True(t, ok)
	require.Equal(t, uint64(4), number, "no number is given twice")
}

// What was restored comes first, in frames of its own.
func TestRestored(t *testing.T) {
	c := newCourier()
	for n := range uint64(20) {
		c.Restore("a", courier.Letter[int]{Session: courier.Session{9}, Number: n + 100, Bytes: 1})
	}
	require.Zero(t, put(c, "a", 1, 1))
	require.Equal(t, 1, put(c, "b", 1, 1))
	for n := range uint64(15) {
		to, numbers := next(t, c, 0)
		require.Equal(t, "a", to)
		require.Equal(t, []uint64{n + 100}, numbers)
		if n == 0 {
			to, _ = next(t, c, 0)
			require.Equal(t, "b", to)
		}
		c.Answered(0, "a", courier.Answer{Session: courier.Session{9}, Confirmed: n + 100, Demand: 1})
	}
	require.Equal(t, 1, put(c, "a", 1, 1))
	next(t, c, 0)
	c.Answered(0, "a", courier.Answer{Session: courier.Session{9}, Confirmed: 115, Demand: 100})
	_, numbers := next(t, c, 0)
	require.Equal(t, []uint64{116, 117, 118, 119}, numbers)
}
