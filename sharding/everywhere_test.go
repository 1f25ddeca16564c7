// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// Questions to all nodes at once: in good health, with a node that does not answer, by pages, and what all
// entities that live are told.

// populate wakes entities e-0, e-1, ..., and passes time until they are idle.
func (w *world) populate(n int) {
	for i := range n {
		w.nodes[i%len(w.nodes)].must(fmt.Sprintf("e-%d", i), "x")
	}
}

// Any node says what all nodes host, and how many entities live there.
func TestShardsEverywhere(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		w.populate(40)
		for _, n := range w.nodes {
			c, err := sharding.ShardsEverywhere(t.Context(), n.system, "test")
			require.NoError(t, err)
			require.Equal(t, []int{12, 12, 41, 0}, []int{c.Shards, c.Hosted, c.Entities, c.Stuck}, "with the entity %q", "first")
			require.Empty(t, c.Missing)
			require.Len(t, c.Nodes, 3)
			for i, o := range c.Nodes {
				require.Equal(t, w.nodes[i].Self().String(), o.Node)
				require.True(t, o.Standing)
				require.Len(t, o.Shards, 4)
				require.Equal(t, "serving", o.Shards[0].State)
			}
		}
		_, err := sharding.ShardsEverywhere(t.Context(), w.nodes[0].system, "unknown")
		require.ErrorIs(t, err, sharding.ErrInvalid)
	})
}

// A node that is cut off is named, with the reason, and the others are waited for no longer than asked.
func TestWhoDoesNotAnswerIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		w.populate(40)
		w.cut(w.nodes[2])
		began := time.Now()
		c, err := sharding.ShardsEverywhere(patience.Expiring(t, time.Second), w.nodes[0].system, "test")
		require.NoError(t, err)
		require.Less(t, time.Since(began), time.Second)
		require.Len(t, c.Nodes, 2)
		require.Equal(t, 8, c.Hosted)
		require.Equal(t, []sharding.Unanswered{{Node: w.nodes[2].Self().String(), Reason: "did not answer within 950ms"}}, c.Missing)

		pass(3 * time.Second)
		c, err = sharding.ShardsEverywhere(t.Context(), w.nodes[0].system, "test")
		require.NoError(t, err)
		require.Equal(t, []sharding.Unanswered{{
			Node: w.nodes[2].Self().String(), Reason: "did not answer within 3s: members do not hear from it",
		}}, c.Missing)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = sharding.ShardsEverywhere(ctx, w.nodes[0].system, "test")
		require.ErrorIs(t, err, context.Canceled)
	})
}

// The pages have every entity once, in order, whichever nodes are asked.
func TestEntitiesEverywhereByPages(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		w.populate(40)
		var ids []string
		after, pages := "", 0
		for {
			p, err := sharding.EntitiesEverywhere(t.Context(), w.nodes[pages%3].system, "test", after, 7)
			require.NoError(t, err)
			require.Empty(t, p.Missing)
			require.LessOrEqual(t, len(p.Entities), 7)
			for _, e := range p.Entities {
				ids = append(ids, e.ID)
				require.Equal(t, int(shardOf(e.ID)), e.Shard)
				require.Equal(t, "idle", e.State)
				require.Equal(t, w.nodes[0].must(e.ID, "where"), e.Node)
			}
			pages++
			if after = p.Next; after == "" {
				break
			}
		}
		require.Len(t, ids, 41)
		slices.Sort(ids)
		require.Len(t, slices.Compact(ids), 41)
		require.Equal(t, 6, pages)
		for _, after := range []string{"x", "5000000000/a", "-1/a", "3", "3/\xff"} {
			_, err := sharding.EntitiesEverywhere(t.Context(), w.nodes[0].system, "test", after, 7)
			require.ErrorIs(t, err, sharding.ErrInvalid, after)
		}
	})
}

// All that live are told, once each, and nobody is woken.
func TestAllThatLiveAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		w.populate(40)
		for i := range 10 {
			w.nodes[0].must(fmt.Sprintf("e-%d", i), "passivate")
		}
		pass(time.Second)
		told, err := sharding.TellAll(t.Context(), w.nodes[1].region, say("news"), 0)
		require.NoError(t, err)
		require.Equal(t, sharding.Told{Reached: 31, Shards: 12}, told)
		require.True(t, told.Complete())
		pass(time.Second)
		for i := range 40 {
			want := 1
			if i < 10 {
				want = 0
			}
			require.Len(t, w.journal.of(fmt.Sprintf("e-%d", i), "news"), want, "e-%d", i)
		}
	})
}

// A rate is kept, a mailbox that is full is counted, a home that does not answer is named, and what moves while the
// others are told is told at its next home.
func TestNotAllAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, c *sharding.Config) { c.MailboxSize = 2 }
		w.start(3)
		w.populate(300)
		began := time.Now()
		told, err := sharding.TellAll(t.Context(), w.nodes[0].region, say("news"), 64)
		require.NoError(t, err)
		require.Equal(t, 301, told.Reached)
		require.GreaterOrEqual(t, time.Since(began), time.Second)

		busy := w.nodes[0].asked("e-1", "wait")
		for range 2 {
			w.nodes[0].tell("e-1", "x")
		}
		synctest.Wait() // Nothing but this orders what is told to all after what is told to one.
		told, err = sharding.TellAll(t.Context(), w.nodes[0].region, say("news"), 0)
		require.NoError(t, err)
		require.Equal(t, []int{300, 1}, []int{told.Reached, told.Full})
		require.True(t, told.Complete())
		w.release()
		require.NoError(t, within(t, busy))

		w.cut(w.nodes[2])
		ctx := patience.Expiring(t, time.Second)
		told, err = sharding.TellAll(ctx, w.nodes[0].region, say("news"), 0)
		require.NoError(t, err)
		require.Equal(t, []int{8, 4, 0}, []int{told.Shards, told.Lost, told.Open})
		require.False(t, told.Complete())
		require.Len(t, told.Missing, 1)

		_, err = sharding.TellAll(t.Context(), w.nodes[0].region, nil, 0)
		require.ErrorIs(t, err, sharding.ErrInvalid)
	})
}

// An explanation that is asked for anywhere has what the home knows.
func TestTheHomeOfAnEntityIsAsked(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		id := w.nodes[0].on(w.nodes[1])
		busy := w.nodes[0].asked(id, "wait")
		x, err := w.nodes[0].system.Explain(t.Context(), "test", id)
		require.NoError(t, err)
		require.Contains(t, fmt.Sprint(x.Pending), "the entity is busy since")
		w.release()
		require.NoError(t, within(t, busy))
		w.cut(w.nodes[1])
		x, err = w.nodes[0].system.Explain(t.Context(), "test", id)
		require.NoError(t, err)
		require.Contains(t, x.Pending, "what the entity is at, only its home tells: ask "+w.nodes[1].Self().String()+", which did not answer within 1s")
	})
}
