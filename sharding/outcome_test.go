// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// What an asker is told when its ask fails, and whether that is true: first deadlines that
// pass on the way, then a host that is killed or cannot be reached, then messages that are
// taken back before anybody had them, and last an entity that asks itself.

// oneLine expects that the text of an error has one line, as a log needs it.
func oneLine(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\n")
}

// A message that is in a connection when the link is cut arrives when the link is healed,
// after the deadline of its ask: no entity handles it. Such messages once were handled,
// since the time that was left until the deadline counted from the arrival.
func TestNothingIsHandledAfterItsDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		asker, host := w.nodes[0], w.nodes[1]
		id := asker.on(host)
		asker.must(id, "x") // The entity is started, and the lane is connected.
		w.network.Cut(asker.Self().Address, host.Self().Address)
		_, err := asker.ask(id, "late", 500*time.Millisecond)
		require.ErrorIs(t, err, sharding.ErrUnknownOutcome, "it had been written")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		oneLine(t, err)
		pass(time.Second)
		w.network.HealAll()
		asker.must(id, "y")
		pass(10 * time.Second)
		require.Empty(t, w.journal.of(id, "late"))
	})
}

// A message that reached its home in time, and is passed on to the next home, keeps its
// deadline on the whole way.
func TestADeadlineHoldsOverAMove(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		asker, leaver := w.nodes[0], w.nodes[2]
		id := asker.on(leaver)
		asker.must(id, "x")
		left := make(chan error, 1)
		asker.tell(id, "wait") // The entity holds up the move.
		synctest.Wait()
		go func() { left <- leaver.Leave(t.Context()) }()
		pass(100 * time.Millisecond)
		_, err := asker.ask(id, "late", 500*time.Millisecond)
		require.Error(t, err)
		oneLine(t, err)
		pass(time.Second)
		w.release()
		require.NoError(t, within(t, left))
		asker.must(id, "y")
		require.Empty(t, w.journal.of(id, "late"))
	})
}

// After a process was killed, the outcome of each ask is true: it is unknown for a message
// that the process had got, and a message that never left the asker's node was not
// delivered.
// covers I20.
func TestOutcomesAfterAKillAreTrue(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(m *membership.Config, _ *sharding.Config) {
			m.Downing.StableAfter = downing.AutoDuration(time.Minute)
		}
		w.start(4)
		asker, victim := w.nodes[0], w.nodes[3]
		ids := asker.hosted(victim, 2)
		var before []<-chan error
		for range 5 {
			before = append(before, asker.asked(ids[0], "wait"))
		}
		w.crash(victim)
		w.breakAll()
		synctest.Wait()
		for i := range 10 {
			began := time.Now()
			_, err := asker.ask(ids[i%2], "late", time.Duration(1+i%3)*time.Second)
			require.ErrorIs(t, err, sharding.ErrNotDelivered, "ask %d", i)
			require.NotErrorIs(t, err, sharding.ErrUnknownOutcome, "ask %d", i)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Duration(1+i%3)*time.Second, time.Since(began))
			oneLine(t, err)
		}
		_, err := asker.ask(ids[0], "late", time.Second)
		require.ErrorIs(t, err, sharding.ErrUnreachable, "membership has noticed by now")
		for _, r := range before {
			require.ErrorIs(t, within(t, r), sharding.ErrUnknownOutcome)
		}
		for _, id := range ids {
			asker.insist(id, "x")
			require.Empty(t, w.journal.of(id, "late"))
		}
		require.Zero(t, asker.system.Stats().Failed)
	})
}

// A message that is taken back out of the middle of a window leaves no gap: the messages
// before and behind it are handled, once and in order, when the host can be reached again.
func TestWhatIsTakenOutLeavesNoGap(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		asker, host := w.nodes[0], w.nodes[1]
		id := asker.on(host)
		asker.must(id, "x")
		w.network.Cut(asker.Self().Address, host.Self().Address)
		w.breakAll()
		synctest.Wait()
		const count = 30
		for i := range count {
			asker.tell(id, "n "+string(rune('0'+(i+1)/10))+string(rune('0'+(i+1)%10)))
			_, err := asker.ask(id, "late", 20*time.Millisecond)
			require.ErrorIs(t, err, sharding.ErrNotDelivered)
		}
		w.network.HealAll()
		asker.must(id, "y")
		heard := w.journal.words(id, "n ")
		require.Len(t, heard, count)
		require.IsIncreasing(t, heard)
		require.Empty(t, w.journal.of(id, "late"))
		require.Zero(t, asker.system.Stats().Failed)
	})
}

// A lane to a host that cannot be reached, which is given up and begins anew again and
// again, takes no message, so that its cell can take every message back.
func TestALaneThatIsGivenUpTakesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(m *membership.Config, _ *sharding.Config) {
			m.Downing.StableAfter = downing.AutoDuration(time.Minute)
			m.Transport.MaxSilence, m.Transport.GiveUpAfter = 300*time.Millisecond, 500*time.Millisecond
		}
		w.start(3)
		asker, host := w.nodes[0], w.nodes[2]
		id := asker.on(host)
		asker.must(id, "x")
		w.cut(host)
		w.breakAll()
		synctest.Wait()
		for i := range 40 {
			asker.tell(id, "n "+strconv.Itoa(i+1))
			_, err := asker.ask(id, "late", 130*time.Millisecond)
			require.ErrorIs(t, err, sharding.ErrNotDelivered, "ask %d", i)
		}
		w.network.HealAll()
		asker.must(id, "y")
		require.Empty(t, w.journal.of(id, "late"))
		w.inOrder(id, "n", 40)
	})
}

// A node that never joined a cluster knows no home, so that its asks are not delivered.
func TestAsksOfANodeThatNeverJoinedAreNotDelivered(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(m *membership.Config, _ *sharding.Config) { m.Membership.SeedNodes = []string{address(9)} }
		n := w.build()
		n.startKind()
		_, err := n.ask("a", "x", 2*time.Second)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, sharding.ErrUnknownOutcome)
		require.ErrorContains(t, err, "the home of the shard is not known")
		oneLine(t, err)
		_, err = sharding.Ask[text](t.Context(), n.region, "a", say("x"))
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		require.ErrorContains(t, err, "minute")
	})
}

// A message that waits in a mailbox of the asker's own node is taken back when the ask ends,
// by its deadline or by its context.
func TestWhatWaitsHereIsTakenOut(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		n := w.nodes[0]
		n.tell("a", "wait")
		_, err := n.ask("a", "late", time.Second)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() {
			_, err := sharding.Ask[text](ctx, n.region, "a", say("late"))
			result <- err
		}()
		pass(time.Second)
		cancel()
		err = within(t, result)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		require.ErrorIs(t, err, context.Canceled)
		w.release()
		n.must("a", "y")
		require.Empty(t, w.journal.of("a", "late"))
	})
}

// An ask of an entity to itself fails at once: the entity would wait for itself.
func TestAnEntityThatAsksItselfFailsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		for _, host := range w.nodes {
			id := w.nodes[0].on(host)
			began := time.Now()
			answer := w.nodes[0].must(id, "ask "+id)
			require.Equal(t, began, time.Now())
			require.Contains(t, answer, "an entity asked itself")
			require.Contains(t, answer, "Tell")
			require.NotContains(t, answer, "\n")
			other := sibling(id)
			if other == id {
				other = id + "-other"
			}
			require.Equal(t, "heard x", w.nodes[0].must(id, "ask "+other), "another one may be asked")
		}
	})
}
