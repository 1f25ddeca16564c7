// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// Senders that are faster than an entity: first a flood from all nodes to one entity, then a
// flood during a move and between two entities, and last senders that wait for room when the
// home dies, or when their context ends.

// floods lets several senders of each node tell one entity n messages each, and returns the
// names of the senders. The entity needs a millisecond for each message.
func (w *world) floods(id string, senders, n int) (names []string, done func()) {
	var all sync.WaitGroup
	for _, from := range w.nodes {
		for s := range senders {
			name := fmt.Sprintf("nap %d-%d", from.i, s)
			names = append(names, name)
			all.Go(func() { from.numbers(id, name, n, func(int) {}) })
		}
	}
	return names, all.Wait
}

// The senders of a flood to one slow entity, on its own node and on others, wait for room:
// no message is lost, handled twice or overtaken, no sender starves, and the mailbox is
// bounded. Another entity of the same shard replies at once.
// covers F42, I20, I36.
func TestAFloodWaitsAndHarmsNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		const mailbox, window, count, senders = 20, 16 << 10, 400, 4
		w.config = func(_ *membership.Config, s *sharding.Config) {
			s.NumberOfShards, s.MailboxSize, s.WindowBytes = 1, mailbox, window
		}
		w.start(3)
		home := w.nodes[0].must("flooded", "where")
		names, done := w.floods("flooded", senders, count)
		most := 0
		for range 50 {
			pass(20 * time.Millisecond)
			for _, n := range w.nodes {
				before := time.Now()
				n.must("other", "x")
				require.Less(t, time.Since(before), 20*time.Millisecond, "the flood harms another entity")
				if n.Self().String() == home {
					most = max(most, waiting(t, n, "flooded"))
				}
			}
		}
		require.Greater(t, most, mailbox/2)
		require.LessOrEqual(t, most, mailbox+2*window/128)
		done()
		w.nodes[0].must("flooded", "x")
		for _, name := range names {
			w.inOrder("flooded", name, count)
		}
		firsts := map[string]int{}
		for i, e := range w.journal.of("flooded", "nap ") {
			name := e.what[:strings.LastIndex(e.what, " ")]
			if _, seen := firsts[name]; !seen {
				firsts[name] = i
			}
		}
		for name, at := range firsts {
			require.Less(t, at, len(names)*count/2, "%s had to wait for the others to end", name)
		}
		var stats [3]sharding.Stats
		for i, n := range w.nodes {
			stats[i] = n.system.Stats()
			require.Zero(t, stats[i].Failed, "%+v", stats[i])
			require.Zero(t, stats[i].Waiting)
			require.Zero(t, stats[i].Unsent)
		}
		require.Equal(t, stats[0].Sent+stats[1].Sent+stats[2].Sent, stats[0].Handled+stats[1].Handled+stats[2].Handled)
	})
}

// waiting returns how many messages wait for an entity that lives on a node.
func waiting(t *testing.T, n *node, id string) (count int) {
	t.Helper()
	x, err := n.system.Explain(t.Context(), "test", id)
	require.NoError(t, err)
	for _, p := range x.Pending {
		if _, text, found := strings.Cut(p, "; "); found && strings.HasPrefix(p, "the entity") {
			_, err = fmt.Sscanf(text, "%d messages", &count)
			require.NoError(t, err)
		}
	}
	return count
}

// A shard whose entity is flooded moves when its node leaves, and no message is lost.
// covers F39, I20.
func TestAFloodedShardMoves(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		const count = 300
		w.config = func(_ *membership.Config, s *sharding.Config) { s.MailboxSize, s.WindowBytes = 10, 8<<10 }
		w.start(3)
		id := w.nodes[0].on(w.nodes[2])
		var all sync.WaitGroup
		for _, n := range w.nodes[:2] {
			for s := range 3 {
				all.Go(func() { n.numbers(id, fmt.Sprintf("nap %d-%d", n.i, s), count, func(int) {}) })
			}
		}
		pass(100 * time.Millisecond)
		ctx := patience.Context(t)
		before := time.Now()
		require.NoError(t, w.nodes[2].Leave(ctx))
		require.Less(t, time.Since(before), 5*time.Second)
		all.Wait()
		require.NotEqual(t, w.nodes[2].Self().String(), w.nodes[0].must(id, "where"))
		for _, n := range w.nodes[:2] {
			for s := range 3 {
				w.inOrder(id, fmt.Sprintf("nap %d-%d", n.i, s), count)
			}
			require.Zero(t, n.system.Stats().Failed)
		}
	})
}

// Two entities that flood each other, each in the middle of a message, do not wait for ever,
// and neither does an entity that floods itself: with the context of an entity, a wait for
// room is bounded.
func TestEntitiesThatFloodEachOtherGoOn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.MailboxSize, s.WindowBytes = 2, 4<<10 }
		w.start(2)
		a, b := w.nodes[0].on(w.nodes[0]), w.nodes[0].on(w.nodes[1])
		before := time.Now()
		there, back := w.nodes[0].asked(a, "flood "+b), w.nodes[1].asked(b, "flood "+a)
		require.NoError(t, within(t, there))
		require.NoError(t, within(t, back))
		require.GreaterOrEqual(t, time.Since(before), 5*time.Second)
		require.Less(t, time.Since(before), 15*time.Second)
		require.NotEmpty(t, append(w.journal.of(a, "overloaded"), w.journal.of(b, "overloaded")...))
		w.nodes[0].must(a, "x")
		w.nodes[1].must(b, "x")
		require.NoError(t, within(t, w.nodes[0].asked(a, "flood "+a)), "nor does one that floods itself")
	})
}

// A sender that waits for the mailbox of an entity on another node goes on when that node
// dies, and its message reaches the next home.
func TestWaitersForAMailboxGoOnAfterTheHostDied(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.MailboxSize = 2 }
		w.start(3)
		id := w.nodes[0].on(w.nodes[2])
		for range 5 {
			w.nodes[0].tell(id, "wait")
			pass(10 * time.Millisecond)
			if w.nodes[0].system.Stats().Held > 0 {
				break
			}
		}
		require.EqualValues(t, 1, w.nodes[0].system.Stats().Held)
		late := w.nodes[0].asked(id, "late")
		pass(5 * time.Second)
		require.Empty(t, late)
		w.crash(w.nodes[2])
		require.NoError(t, within(t, late))
		require.Zero(t, w.nodes[0].system.Stats().Held)
	})
}

// Senders whose contexts end while they wait for room leave nothing behind.
func TestWaitersThatGiveUpLeaveNothingBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.MailboxSize = 2 }
		w.start(1)
		n := w.nodes[0]
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				ctx := patience.Expiring(t, time.Duration(1+i%40)*100*time.Microsecond)
				if err := n.region.Tell(ctx, "a", say("nap")); err != nil {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
			})
		}
		all.Wait()
		n.must("a", "x")
		stats := n.system.Stats()
		require.Zero(t, stats.Waiting)
		require.Equal(t, stats.Sent, stats.Handled)
	})
}
