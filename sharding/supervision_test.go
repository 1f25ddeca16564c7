// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// What becomes of entities that fail or do not return: first those that fail at every
// message or at their start, and what their senders are told; then entities that do not
// return, alone and during a move; last a node without standing, and the wait for the end.

// An entity that panics at every message is started anew at once the first time, and rests
// for longer and longer after that. During a rest its messages fail with the reason, from
// each node. The other entities of the shard are not harmed.
func TestAnEntityThatPanicsOnEveryMessageRests(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.NumberOfShards = 1 }
		w.start(2)
		for _, n := range w.nodes {
			id := fmt.Sprintf("bad-%d", n.i)
			for try, rest := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second} {
				_, err := n.ask(id, "panic", limit)
				require.ErrorIs(t, err, sharding.ErrEntityFailed)
				require.ErrorContains(t, err, "panic: broken")
				synctest.Wait()
				if rest > 0 {
					pass(rest - 10*time.Millisecond)
					_, err = n.ask(id, "x", limit)
					require.ErrorIs(t, err, sharding.ErrEntityFailed)
					require.ErrorContains(t, err, "panic: broken", "it rests, and says why")
					before := time.Now()
					n.must("neighbour", "x")
					require.Less(t, time.Since(before), 10*time.Millisecond)
					pass(20 * time.Millisecond)
				}
				require.Len(t, w.journal.of(id, "start"), try+1)
			}
			n.must(id, "x")
			_, err := n.ask(id, "panic", limit)
			require.ErrorIs(t, err, sharding.ErrEntityFailed)
			n.must(id, "x")
			require.Len(t, w.journal.of(id, "stop"), len(w.journal.of(id, "start"))-1)
		}
	})
}

// Entities whose messages never end share the workers with the others: an entity with one
// message waits for a run of theirs at most.
func TestEntitiesThatAlwaysHaveMessagesLetOthersGoFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		n := w.nodes[0]
		n.must("other", "x")
		for i := range 3 * runtime.GOMAXPROCS(0) {
			n.tell(fmt.Sprintf("endless-%d", i), "endless 20000")
		}
		n.must("other", "x")
		require.Less(t, len(w.journal.of("endless-0", "endless")), 20001, "it goes on")
		synctest.Wait()
		require.Len(t, w.journal.of("endless-0", "endless"), 20001)
	})
}

// With StopOnFailure the messages that wait for an entity that fails fail too. The next
// message starts the entity, without a rest.
func TestAnEntityThatStopsOnFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.OnFailure = sharding.StopOnFailure }
		w.start(2)
		for _, host := range w.nodes {
			id := w.nodes[0].on(host)
			for range 3 {
				first := w.nodes[0].asked(id, "nap")
				failing, behind := w.nodes[0].asked(id, "fail"), w.nodes[0].asked(id, "x")
				require.NoError(t, within(t, first))
				require.ErrorIs(t, within(t, failing), sharding.ErrEntityFailed)
				require.ErrorContains(t, within(t, behind), "broken", "it waited, and hears why")
			}
			require.Empty(t, w.journal.of(id, "x"))
			require.Len(t, w.journal.of(id, "start"), 3)
			require.Len(t, w.journal.of(id, "stop"), 3)
		}
	})
}

// An asker of an entity that cannot start is told why, on each node, also during the rest of
// the entity. The text of the error may be too long, or no UTF-8, or may panic.
func TestTheReasonOfAFailedStartReachesTheAsker(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(n *node, k *sharding.Kind[text]) {
			k.New = func(*sharding.Context) sharding.Entity[text] { return &garrulous{actor{n: n}} }
		}
		w.form(2)
		for _, n := range w.nodes {
			n.startKind()
		}
		for _, n := range w.nodes {
			for range 2 {
				_, err := n.ask("bad-start-1", "x", limit)
				require.ErrorIs(t, err, sharding.ErrEntityFailed)
				require.ErrorContains(t, err, "no storage: ??")
				require.Less(t, len(err.Error()), 1200)
			}
			for id, command := range map[string]string{"panic-error": "x", "fine-" + n.Self().String(): "panic-error"} {
				_, err := n.ask(id, command, limit)
				require.ErrorIs(t, err, sharding.ErrEntityFailed)
				require.ErrorContains(t, err, "panic: in Error")
			}
		}
		require.Len(t, w.journal.of("bad-start-1", "start"), 1)
	})
}

// garrulous is an actor whose errors are too long and not UTF-8, or have a text that panics.
type garrulous struct{ actor }

func (g *garrulous) Start(c *sharding.Context) error {
	if c.ID() == "panic-error" {
		return angry{}
	}
	if err := g.actor.Start(c); err != nil {
		return fmt.Errorf("%w: \xff\xfe?%s", err, strings.Repeat("x", 3<<20))
	}
	return nil
}

func (g *garrulous) Receive(c *sharding.Context, m text) error {
	if m.GetValue() == "panic-error" {
		return angry{}
	}
	return g.actor.Receive(c, m)
}

// angry is an error whose text panics.
type angry struct{}

func (angry) Error() string { panic("in Error") }

// An entity that does not return from its start, a message or its stop is counted as stuck
// until it returns, and an explanation says so. Other entities go on.
func TestEntitiesThatDoNotReturnAreReported(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		n := w.nodes[0]
		starting, running := n.asked("slow-start", "x"), n.asked("runs", "wait")
		n.must("slow-stop", "passivate")
		behind := n.asked("slow-stop", "x")
		pass(time.Minute)
		require.Zero(t, n.system.Stats().Stuck)
		pass(15 * time.Second)
		require.EqualValues(t, 3, n.system.Stats().Stuck)
		x, err := n.region.Explain(t.Context(), "runs")
		require.NoError(t, err)
		require.Contains(t, x.Pending[0], "the entity is busy since ")
		require.Contains(t, x.Pending[0], ", and does not return")
		require.Contains(t, x.String(), "the entity is busy since")
		before := time.Now()
		n.must("other", "x")
		require.Less(t, time.Since(before), time.Millisecond)
		pass(5 * time.Second)
		require.Empty(t, starting)
		w.release()
		for _, r := range []<-chan error{starting, running, behind} {
			require.NoError(t, within(t, r))
		}
		require.Zero(t, n.system.Stats().Stuck)
	})
}

// With on-stuck set to abandon, a move goes on without an entity that does not return. The
// outcome of its message is unknown, and the messages that waited behind it were not
// delivered. The next home replies while the old instance still runs.
func TestAMoveThatGoesOnWithoutStuckEntities(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) {
			s.OnStuck, s.HandoffTimeout = "abandon", 2*time.Second
		}
		w.start(3)
		n, leaver := w.nodes[0], w.nodes[2]
		id := n.on(leaver)
		running, behind := n.asked(id, "wait"), n.asked(id, "behind")
		left := make(chan error, 1)
		before := time.Now()
		go func() {
			ctx := patience.Context(t)
			left <- leaver.Leave(ctx)
		}()
		err := within(t, running)
		require.ErrorIs(t, err, sharding.ErrUnknownOutcome)
		require.ErrorContains(t, err, "went on without it")
		require.ErrorIs(t, within(t, behind), sharding.ErrNotDelivered)
		require.NotEqual(t, leaver.Self().String(), n.must(id, "where"))
		require.NoError(t, within(t, left), "it leaves in order")
		require.Less(t, time.Since(before), 15*time.Second)
		require.EqualValues(t, 1, leaver.system.Stats().Stuck)
		require.Empty(t, w.journal.of(id, "behind"))
		starts := w.journal.of(id, "start")
		require.Len(t, starts, 2)
		require.Positive(t, starts[1].epoch.Compare(starts[0].epoch))
		w.release()
		require.NoError(t, leaver.awaitEnd(limit))
		require.Len(t, w.journal.of(id, "stop"), 1, "it is stopped when it returns")
		require.Zero(t, leaver.system.Stats().Stuck)
	})
}

// A node without standing takes messages to its entities until the mailbox is full. After
// that senders wait, and are told that the standing is missing. The messages are handled
// when the node has standing again.
func TestANodeWithoutStandingSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(m *membership.Config, s *sharding.Config) {
			m.Downing.StableAfter = downing.AutoDuration(time.Minute)
			s.MailboxSize = 2
		}
		w.start(3)
		lost := w.nodes[2]
		id := lost.on(lost)
		lost.must(id, "x")
		w.cut(lost)
		eventually(t, "the standing ends", func() bool { return !lost.Standing().Held() })
		pass(time.Second)
		lost.tell(id, "n 1")
		lost.tell(id, "n 2")
		_, err := lost.ask(id, "x", time.Second)
		require.ErrorIs(t, err, sharding.ErrNoStanding)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		x, err := lost.system.Explain(t.Context(), "test", id)
		require.NoError(t, err)
		require.Contains(t, x.String(), "no standing")
		w.network.HealAll()
		eventually(t, "they are handled", func() bool { return len(w.journal.of(id, "n ")) == 2 })
		lost.must(id, "x")
		w.inOrder(id, "n", 2)
	})
}

// A wait for the end that ends with its context leaves no goroutine behind.
func TestAwaitEndLeavesNothingBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		n := w.nodes[0]
		blocked := n.asked("a", "wait")
		require.NoError(t, n.Close())
		require.ErrorIs(t, within(t, blocked), sharding.ErrUnknownOutcome)
		synctest.Wait()
		before := goroutines()
		for range 50 {
			require.ErrorIs(t, n.awaitEnd(time.Millisecond), context.DeadlineExceeded)
		}
		synctest.Wait()
		require.Less(t, goroutines(), before+25)
		w.release()
		require.NoError(t, n.awaitEnd(limit))
	})
}
