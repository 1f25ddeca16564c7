// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// Nodes that die, are cut off or are closed: first crashes, of a home and of the
// coordinator, with and without load; then the loss of standing, for good and for a moment,
// and a new start; last Close, and senders that wait for room in vain.

// When a home dies, the outcome of the asks to it is unknown, and within ten seconds, with
// the default settings, its entities reply from a new home.
// covers I20, I27.
func TestACrashIsReportedAndRepairedWithinTenSeconds(t *testing.T) {
	for _, size := range []int{3, 5} {
		t.Run(fmt.Sprintf("nodes=%d", size), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.start(size)
				victim := w.nodes[size-1]
				ids := w.nodes[0].hosted(victim, 2)
				var results []<-chan error
				for _, n := range w.nodes[:2] {
					results = append(results, n.asked(ids[0], "wait"), n.asked(ids[0], "late"))
				}
				before := time.Now()
				w.crash(victim)
				for _, r := range results {
					require.ErrorIs(t, within(t, r), sharding.ErrUnknownOutcome)
				}
				require.Less(t, time.Since(before), 10*time.Second)
				for _, id := range ids {
					require.NotEqual(t, victim.Self().String(), w.nodes[0].insist(id, "where"))
				}
				require.Less(t, time.Since(before), 10*time.Second)
				starts := w.journal.of(ids[0], "start")
				require.Len(t, starts, 2)
				require.Positive(t, starts[1].epoch.Compare(starts[0].epoch))
				require.Empty(t, w.journal.of(ids[0], "late"), "it was behind what did not return")
			})
		})
	}
}

// When the node of the coordinator dies, the next coordinator gives its shards homes. Shards
// that live elsewhere are served without a coordinator.
// covers F34, I27.
func TestTheNodeOfTheCoordinatorDies(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		lost, stays := w.nodes[1].on(w.nodes[0]), w.nodes[1].on(w.nodes[2])
		w.nodes[1].must(stays, "x")
		before := time.Now()
		w.crash(w.nodes[0])
		crashed := time.Now()
		w.nodes[1].must(stays, "x")
		require.Less(t, time.Since(crashed), 100*time.Millisecond, "a shard with a home needs no coordinator")
		w.nodes[1].insist(lost, "where")
		require.Less(t, time.Since(before), 10*time.Second)
		require.Len(t, w.journal.of(stays, "start"), 1)
	})
}

// When a host dies under load, each message is handled at most once, no message overtakes
// another of its sender, and every message that is lost is counted.
func TestACrashUnderLoadDoublesAndTurnsRoundNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(4)
		id := w.nodes[0].on(w.nodes[3])
		const count = 500
		for i := range count {
			for _, n := range w.nodes[:3] {
				n.tell(id, fmt.Sprintf("from-%d %d", n.i, i+1))
			}
			if i == 100 {
				w.crash(w.nodes[3])
			}
			pass(20 * time.Millisecond)
		}
		for _, n := range w.nodes[:3] {
			n.insist(id, "x")
			heard := w.journal.words(id, fmt.Sprintf("from-%d ", n.i))
			last := 0
			for _, s := range heard {
				number, err := strconv.Atoi(s)
				require.NoError(t, err)
				require.Greater(t, number, last)
				last = number
			}
			require.Equal(t, count, last)
			require.GreaterOrEqual(t, n.system.Stats().Failed, uint64(count-len(heard)), "what was lost is counted")
		}
	})
}

// A message to a process that was killed, sent after its connections have ended and before
// it is removed, does not leave the sender's node: it goes to the next home, in order and
// without an error. Such messages once had an unknown outcome, since a lane takes messages
// while it is dialled again.
func TestWhatIsSentToAKilledProcessReachesTheNextHome(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(4)
		id := w.nodes[0].on(w.nodes[3])
		for _, n := range w.nodes[:3] { // The lanes to the host are connected.
			n.must(id, "x")
		}
		w.crash(w.nodes[3])
		w.breakAll()
		synctest.Wait()
		before := time.Now()
		const count = 100
		var asks []<-chan error
		for i := range count {
			for _, n := range w.nodes[:3] {
				n.tell(id, fmt.Sprintf("from-%d %d", n.i, i+1))
				asks = append(asks, n.asked(id, "x"))
			}
			pass(20 * time.Millisecond)
		}
		for _, a := range asks {
			require.NoError(t, within(t, a))
		}
		require.Less(t, time.Since(before), 10*time.Second)
		for _, n := range w.nodes[:3] {
			w.inOrder(id, fmt.Sprintf("from-%d", n.i), count)
			require.Zero(t, n.system.Stats().Failed)
		}
	})
}

// When the next home of a killed process's shard has replied to the first ask, it replies
// to all asks at once. That once took seconds more: a cell went on to collect messages for
// the lane to the home that was gone.
func TestTheNextHomeAnswersEverythingAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(4)
		caller, victim := w.nodes[0], w.nodes[3]
		id := caller.on(victim)
		caller.must(id, "x") // The lane to the victim is connected.
		w.crash(victim)
		w.breakAll()
		synctest.Wait()
		const count = 750
		type ask struct{ asked, answered time.Time }
		asks := make(chan ask, count)
		crash := time.Now()
		for range count {
			go func(asked time.Time) {
				_, err := caller.ask(id, "x", limit)
				assert.NoError(t, err)
				asks <- ask{asked, time.Now()}
			}(time.Now())
			pass(20 * time.Millisecond)
		}
		back := within(t, asks) // The asks come in the order of their replies.
		require.Less(t, back.answered.Sub(crash), 10*time.Second)
		for range count - 1 {
			a := within(t, asks)
			since := a.asked
			if since.Before(back.answered) {
				since = back.answered
			}
			require.Less(t, a.answered.Sub(since), 100*time.Millisecond, "asked %v after the crash", a.asked.Sub(crash))
		}
	})
}

// A sender that waits for room in a full window goes on when the host has died.
func TestWaitersForRoomGoOnAfterTheHostDied(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.WindowBytes = 4 << 10 }
		w.start(3)
		id := w.nodes[0].on(w.nodes[2])
		w.cut(w.nodes[2])
		done := make(chan error, 1)
		go func() {
			for range 10 {
				if err := w.nodes[0].region.Tell(t.Context(), id, say(strings.Repeat("x", 1000))); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		pass(time.Second)
		require.Empty(t, done, "the window is full")
		w.crash(w.nodes[2])
		require.NoError(t, within(t, done))
	})
}

// A node that is cut off stops hosting by its own clock, before its entities start
// elsewhere. It begins no message after that, and stops its entities although messages wait
// for them.
// covers F9, I1.
func TestANodeThatIsCutOffBeginsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		lost := w.nodes[2]
		id := w.nodes[0].on(lost)
		w.cut(lost)
		lost.tell(id, "context")
		end := make(chan error, 1)
		go func() {
			for {
				if err := lost.region.Tell(t.Context(), id, say("late")); err != nil {
					end <- err
					return
				}
				<-time.After(100 * time.Millisecond)
			}
		}()
		require.NotEqual(t, lost.Self().String(), w.nodes[0].insist(id, "where"))
		within(t, lost.Done())
		err := within(t, end)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		require.ErrorIs(t, err, sharding.ErrClosed)
		require.ErrorIs(t, lost.Err(), membership.ErrDown)
		require.NoError(t, lost.awaitEnd(limit))
		starts, ended := w.journal.of(id, "start"), w.journal.of(id, "ended")
		require.Len(t, starts, 2)
		require.Len(t, ended, 1)
		require.True(t, ended[0].at.Before(starts[1].at), "the context of entities ends with the standing")
		require.Empty(t, w.journal.of(id, "late"), "what waited is not begun")
		stops := w.journal.of(id, "stop")
		require.NotEmpty(t, stops)
		require.Equal(t, 2, stops[0].node)
	})
}

// A node that loses its standing for a moment handles the messages that came meanwhile when
// it has standing again, and the reply that was ready leaves then.
func TestStandingThatComesBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(m *membership.Config, _ *sharding.Config) {
			m.Downing.StableAfter = downing.AutoDuration(time.Minute)
		}
		w.start(3)
		lost := w.nodes[2]
		id := lost.on(lost)
		answer := lost.asked(id, "context")
		w.cut(lost)
		eventually(t, "the standing ends", func() bool { return !lost.Standing().Held() })
		lost.tell(id, "late")
		pass(time.Second)
		require.Len(t, w.journal.of(id, "ended"), 1)
		require.Empty(t, answer, "no reply leaves without standing")
		require.Empty(t, w.journal.of(id, "late"), "no message begins without standing")
		w.network.HealAll()
		require.NoError(t, within(t, answer))
		lost.must(id, "x")
		require.Len(t, w.journal.of(id, "late"), 1)
		require.Len(t, w.journal.of(id, "start"), 1)
		back := lost.asked(id, "context")
		pass(time.Second)
		require.Empty(t, back, "entities have a context that lives again")
	})
}

// A node that is started after another has left hosts: the shard of the first goes to the
// node that stays, and when that leaves too, to the new node.
// covers F28.
func TestANodeThatStartsAgainHosts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		id := w.nodes[0].on(w.nodes[1])
		require.Equal(t, w.nodes[1].Self().String(), w.nodes[0].must(id, "where"))
		ctx := patience.Context(t)
		require.NoError(t, w.nodes[1].Leave(ctx))
		require.Equal(t, w.nodes[0].Self().String(), w.nodes[0].must(id, "where"))
		w.build().startKind()
		require.Equal(t, w.nodes[0].must(id, "where"), w.nodes[2].must(id, "where"))
		require.NoError(t, w.nodes[0].Leave(ctx))
		require.Equal(t, w.nodes[2].Self().String(), w.nodes[2].must(id, "where"))
		require.Len(t, w.journal.of(id, "stop"), 2)
	})
}

// Close of a node ends every ask on it, and every message that is sent afterwards is
// refused. AwaitEnd waits until the entities have returned, or its context ends.
func TestCloseEndsEverything(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		here, there := w.nodes[0].on(w.nodes[0]), w.nodes[0].on(w.nodes[1])
		running, waiting := w.nodes[0].asked(here, "wait"), w.nodes[0].asked(here, "x")
		remote := w.nodes[0].asked(there, "wait")
		ctx := patience.Expiring(t, time.Second)
		require.ErrorIs(t, w.nodes[0].system.AwaitEnd(ctx), ctx.Err(), "the node has not ended")
		require.NoError(t, w.nodes[0].Close())
		require.ErrorIs(t, within(t, running), sharding.ErrUnknownOutcome)
		require.ErrorIs(t, within(t, remote), sharding.ErrUnknownOutcome)
		require.ErrorIs(t, within(t, waiting), sharding.ErrNotDelivered, "it had not begun")
		err := w.nodes[0].region.Tell(t.Context(), here, say("x"))
		require.ErrorIs(t, err, sharding.ErrClosed)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		_, err = w.nodes[0].ask(there, "x", time.Second)
		require.ErrorIs(t, err, sharding.ErrClosed)
		require.ErrorIs(t, w.nodes[0].awaitEnd(time.Second), ctx.Err(), "an entity does not return")
		w.release()
		require.NoError(t, w.nodes[0].awaitEnd(limit))
		require.Len(t, w.journal.of(here, "stop"), 1)
	})
}

// Close also ends the asks that wait for room in the window.
func TestCloseEndsWaitersForRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.WindowBytes = 4 << 10 }
		n := w.build()
		n.startKind()
		var results []<-chan error
		for range 10 {
			results = append(results, n.asked("a", strings.Repeat("x", 1000)))
		}
		require.NoError(t, n.Close())
		for _, r := range results {
			require.ErrorIs(t, within(t, r), sharding.ErrNotDelivered)
		}
		synctest.Wait()
	})
}

// A sender that waits in vain for room is told why there was none.
func TestWaitingInVainForRoomTellsWhy(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(m *membership.Config, s *sharding.Config) {
			m.Downing.StableAfter = downing.AutoDuration(time.Minute)
			s.WindowBytes = 4 << 10
		}
		w.start(3)
		there := w.nodes[0].on(w.nodes[2])
		fill := func(d time.Duration) (err error) {
			ctx := patience.Expiring(t, d)
			for err == nil {
				err = w.nodes[0].region.Tell(ctx, there, say(strings.Repeat("x", 1000)))
			}
			return err
		}
		w.cut(w.nodes[2])
		cut := time.Now()
		err := fill(time.Second)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		require.NotErrorIs(t, err, sharding.ErrUnreachable, "nobody has noticed yet")
		require.ErrorContains(t, err, "too much is on its way to "+w.nodes[2].Self().String())
		err = fill(20 * time.Second)
		require.ErrorIs(t, err, sharding.ErrUnreachable)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var unreachable *sharding.UnreachableError
		require.ErrorAs(t, err, &unreachable)
		require.Equal(t, w.nodes[2].Self(), unreachable.Home)
		require.NotEmpty(t, unreachable.Observers)
		require.InDelta(t, time.Since(cut).Seconds(), time.Since(unreachable.Since).Seconds(), 2, "it is silent since the cut")
		require.ErrorContains(t, err, "home of the shard is unreachable: "+w.nodes[2].Self().String()+", silent since 2000-")
	})
}
