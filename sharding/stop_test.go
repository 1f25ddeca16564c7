// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// Stop is told why the entity is stopped.
func TestStopHearsWhy(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.OnFailure = sharding.StopOnFailure }
		w.start(2)
		ids := w.nodes[0].hosted(w.nodes[1], 3)
		w.nodes[0].must(ids[0], "passivate")
		_, err := w.nodes[0].ask(ids[1], "fail", limit)
		require.ErrorIs(t, err, sharding.ErrEntityFailed)
		w.nodes[0].must(ids[2], "x")
		ctx := patience.Context(t)
		require.NoError(t, w.nodes[1].Leave(ctx))
		for i, why := range []string{"passivated", "failed", "leaving"} {
			require.Equal(t, []string{why}, w.journal.words(ids[i], "stop "))
		}
		last := w.nodes[0].on(w.nodes[0])
		w.nodes[0].must(last, "x")
		require.NoError(t, w.nodes[0].Close())
		require.NoError(t, w.nodes[0].awaitEnd(limit))
		require.Equal(t, []string{"lost"}, w.journal.words(last, "stop "))
	})
}

// An entity of a node that is cut off and declared down is stopped after its successor has
// started. The reason of its stop says that a successor may run.
func TestStopHearsOfASuccessor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		lost := w.nodes[2]
		id := lost.on(lost)
		lost.must(id, "x")
		w.cut(lost)
		require.NotEqual(t, lost.Self().String(), w.nodes[0].insist(id, "where"))
		within(t, lost.Done())
		require.NoError(t, lost.awaitEnd(limit))
		require.Equal(t, "lost", w.journal.words(id, "stop ")[0])
	})
}

// An entity that looks at its context sees the end of its node's standing by the clock, and so before a successor
// begins, though nobody on its node has had a turn to tell it.
// covers I14.
func TestTheContextOfAnEntityLooksAtTheClock(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		lost := w.nodes[2]
		id := lost.on(lost)
		lost.tell(id, "look")
		synctest.Wait()
		thaw := lost.freeze()
		defer thaw()
		require.NotEqual(t, lost.Self().String(), w.nodes[0].insist(id, "where"))
		ended, starts := w.journal.of(id, "ended"), w.journal.of(id, "start")
		require.Len(t, ended, 1)
		require.Len(t, starts, 2)
		require.True(t, ended[0].at.Before(starts[1].at), "ended at %v, replaced at %v", ended[0].at, starts[1].at)
	})
}

// An idle entity is not stopped while its node has no standing: a successor may have
// written before its Stop does. It is stopped when the standing is back.
func TestStopWaitsForStanding(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(m *membership.Config, _ *sharding.Config) {
			m.Downing.StableAfter = downing.AutoDuration(time.Minute)
		}
		w.start(3)
		lost := w.nodes[2]
		id := lost.on(lost)
		answer := lost.asked(id, "context") // The actor returns when the standing ends.
		lost.tell(id, "passivate")
		w.cut(lost)
		eventually(t, "the standing ends", func() bool { return len(w.journal.of(id, "ended")) > 0 })
		pass(5 * time.Second)
		require.Empty(t, w.journal.of(id, "stop"))
		w.network.HealAll()
		require.NoError(t, within(t, answer))
		eventually(t, "it stops", func() bool { return len(w.journal.of(id, "stop")) > 0 })
		require.Equal(t, []string{"passivated"}, w.journal.words(id, "stop "))
	})
}
