// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
	"github.com/quorate/quorate/gateway/internal/exchange"
)

func call() *exchange.Call[int] {
	return exchange.New[int](exchange.Config{Window: 2, UnreadBytes: 10, WriteTimeout: time.Second})
}

func TestARequestIsOpenUntilItsOutcomeIsSent(t *testing.T) {
	c := call()
	require.NoError(t, c.Enter())
	require.NoError(t, c.Enter())
	require.True(t, c.Put(7, 1))
	taken, going := c.Take(nil, false)
	require.Equal(t, []int{7}, taken)
	require.False(t, going)
	c.Half()
	c.Sending(1)
	c.Sent(1)
	require.False(t, c.Finished(), "one is open")
	require.NoError(t, c.Enter())
	require.ErrorIs(t, c.Enter(), exchange.ErrWindow)
	require.ErrorIs(t, c.Over(), exchange.ErrWindow)
	c.Sent(2)
	require.True(t, c.Finished())
}

func TestAClientIsToldOnceThatTheNodeEnds(t *testing.T) {
	c := call()
	_, going := c.Take(nil, true)
	require.True(t, going)
	_, going = c.Take(nil, true)
	require.False(t, going)
}

func TestRepliesThatWaitAreBounded(t *testing.T) {
	c := call()
	require.True(t, c.Put(1, 100))
	require.NoError(t, c.Over(), "a single one may be larger")
	require.True(t, c.Put(2, 0))
	require.ErrorIs(t, c.Over(), exchange.ErrUnread)
	require.False(t, c.End(exchange.ErrStalled), "the first reason counts")
	require.Equal(t, []int{1, 2}, c.Abandon())
	require.False(t, c.Put(3, 0), "it is for nobody")
	require.Empty(t, c.Abandon())
}

func TestWhoDoesNotReadIsCutInTime(t *testing.T) {
	c := call()
	c.Look(exchange.Instant(time.Hour))
	require.NoError(t, c.Over(), "nothing is being written")
	c.Sending(1)
	c.Look(exchange.Instant(time.Second))
	require.NoError(t, c.Over())
	c.Look(exchange.Instant(time.Second) + 1)
	require.ErrorIs(t, c.Over(), exchange.ErrStalled)
}

func TestTimesAndLimitsOfARequest(t *testing.T) {
	for micros, want := range map[uint64]time.Duration{0: time.Minute, 5: 5 * time.Microsecond, 1 << 63: time.Minute} {
		require.Equal(t, want, exchange.Left(&clientv1.Request{TimeoutMicros: micros}))
	}
	l := exchange.Limits{Requests: 2, Bytes: 10}
	require.False(t, l.Reached(1, 1000), "one alone may be larger")
	require.False(t, l.Reached(2, 10))
	require.True(t, l.Reached(2, 11))
	require.True(t, l.Reached(3, 0))
}
