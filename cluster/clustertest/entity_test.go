// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/sharding"
)

// One entity alone: its replies, what it tells others, its timers, its passivation and its
// failures.

// clerk is an entity that does a bit of everything, by the number that it is sent.
type clerk struct{ to *sharding.Region[number] }

// The orders to a clerk.
const (
	forward = iota // Tell the counter "total" 100.
	remind         // Tell it 1 in ten minutes.
	fail           // Return an error.
	crash          // Panic.
)

// Receive carries out an order.
func (e *clerk) Receive(c *sharding.Context, order number) error {
	switch order.GetValue() {
	case forward:
		if err := e.to.Tell(c.Context(), "total", wrapperspb.Int64(100)); err != nil {
			return err
		}
	case remind:
		c.After("ring", 10*time.Minute, func(c *sharding.Context) error {
			return e.to.Tell(c.Context(), "total", wrapperspb.Int64(1))
		})
	case fail:
		return errors.New("the ink is dry")
	case crash:
		panic("out of paper")
	}
	return c.Reply(order)
}

func TestOneEntityAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 1)
		totals := clustertest.Record(c, sharding.Kind[number]{Name: "total"}, func(_ string, n number) any { return n })
		e := clustertest.NewEntity(c, sharding.Kind[number]{
			Name: "clerk", PassivateAfter: time.Minute,
			New: func(*sharding.Context) sharding.Entity[number] { return &clerk{to: totals.Any()} },
		}, "anna")
		_, lives := e.State()
		require.False(t, lives)
		order := func(n int64) error {
			_, err := clustertest.Ask[number](e, wrapperspb.Int64(n))
			return err
		}
		require.NoError(t, order(forward))
		e.Tell(wrapperspb.Int64(forward))
		require.Len(t, totals.Messages(), 2)
		require.Equal(t, "total", totals.Messages()[1].ID)
		require.EqualValues(t, 100, totals.Messages()[1].Message.GetValue())
		require.Equal(t, time.Now(), totals.Messages()[1].At)

		require.NoError(t, order(remind))
		c.Advance(10*time.Minute - time.Second)
		require.Len(t, totals.Messages(), 2)
		c.Advance(time.Second)
		require.Len(t, totals.Messages(), 3)
		require.EqualValues(t, 1, totals.Messages()[2].Message.GetValue())
		info, lives := e.State()
		require.True(t, lives)
		require.Equal(t, "idle", info.State)
		require.Equal(t, 1, e.Starts())

		c.Advance(2 * time.Minute)
		_, lives = e.State()
		require.False(t, lives, "it is passivated")
		require.NoError(t, order(remind))
		require.Equal(t, 2, e.Starts())

		require.ErrorContains(t, order(fail), "the ink is dry")
		err := order(crash)
		require.ErrorIs(t, err, sharding.ErrEntityFailed)
		require.ErrorContains(t, err, "out of paper")
		info, lives = e.State()
		require.True(t, lives)
		require.Equal(t, "failed", info.State)
		require.Contains(t, info.Reason, "out of paper")
		c.Advance(time.Minute)
		require.NoError(t, order(forward))
		require.Equal(t, 4, e.Starts())

		reply, err := sharding.Ask[number](t.Context(), totals.Any(), "total", wrapperspb.Int64(7))
		require.NoError(t, err)
		require.EqualValues(t, 7, reply.GetValue())
	})
}

func TestAMessageThatIsNotAcceptedEndsTheTest(t *testing.T) {
	judged(t, 1, func(t *testing.T, c *clustertest.Cluster, e *ended) {
		one := clustertest.NewEntity(c, counters(), "")
		require.Contains(t, e.verdict(func() { one.Tell(wrapperspb.Int64(1)) }), "the id is empty")
		why := e.verdict(func() { clustertest.NewEntity(c, sharding.Kind[number]{Name: "none"}, "a") })
		require.Contains(t, why, "New must be set")
	})
}
