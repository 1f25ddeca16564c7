// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// An entity that gets no message for the configured time is stopped not much later, and the
// next message starts it again. An entity that is in use is not stopped.
func TestIdleEntitiesAreStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		for _, host := range w.nodes {
			ids := w.nodes[0].hosted(host, 2)
			idle, used := ids[0], ids[1]
			w.nodes[0].must(idle, "x")
			for range 5 {
				w.nodes[0].must(used, "x")
				pass(time.Minute)
			}
			stops := w.journal.of(idle, "stop")
			require.Len(t, stops, 1)
			since := stops[0].at.Sub(w.journal.of(idle, "x")[0].at)
			require.GreaterOrEqual(t, since, 2*time.Minute)
			require.LessOrEqual(t, since, 2*time.Minute+15*time.Second)
			require.Empty(t, w.journal.of(used, "stop"))
			w.nodes[0].must(idle, "y")
			require.Len(t, w.journal.of(idle, "start"), 2)
		}
	})
}

// A kind may set the time after which its own idle entities are stopped, or keep them.
func TestAKindSaysWhenItsEntitiesGo(t *testing.T) {
	for after, stops := range map[time.Duration]int{10 * time.Second: 1, -1: 0, time.Hour: 0} {
		t.Run(after.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.kind = func(_ *node, k *sharding.Kind[text]) { k.PassivateAfter = after }
				w.start(1)
				w.nodes[0].must("a", "x")
				pass(10*time.Second - 1)
				require.Empty(t, w.journal.of("a", "stop"))
				pass(5 * time.Minute)
				require.Len(t, w.journal.of("a", "stop"), stops)
			})
		})
	}
}

// An entity that passivates itself is stopped when no message waits for it, and starts again
// at the next message. No message is lost or overtaken, however often that happens.
func TestPassivationLosesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.PassivateAfter = 4 * time.Millisecond }
		w.start(2)
		ids := []string{w.nodes[0].on(w.nodes[0]), w.nodes[0].on(w.nodes[1]), "brief-1"}
		const count = 200
		for i := range count {
			for _, id := range ids {
				for _, n := range w.nodes {
					n.tell(id, fmt.Sprintf("from-%d %d", n.i, i+1))
				}
				if i%3 == 0 {
					w.nodes[0].tell(id, "passivate")
				}
			}
			pass(time.Duration(i%7) * time.Millisecond)
		}
		for _, id := range ids {
			for _, n := range w.nodes {
				n.must(id, "x")
				w.inOrder(id, fmt.Sprintf("from-%d", n.i), count)
			}
			starts := len(w.journal.of(id, "start"))
			require.Greater(t, starts, count/4)
			require.InDelta(t, starts, len(w.journal.of(id, "stop")), 1)
		}
		for _, n := range w.nodes {
			require.Zero(t, n.system.Stats().Failed)
			require.Zero(t, n.system.Stats().Panics, "never two calls at a time")
		}
	})
}

// An entity that passivates itself at an ask replies to it before it is stopped.
func TestPassivateAnswersFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		require.Equal(t, "good night", w.nodes[0].must("a", "passivate"))
		synctest.Wait()
		require.Len(t, w.journal.of("a", "stop"), 1)
	})
}

// Idle entities are stopped, however many a cell has.
func TestManyIdleEntitiesAreStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.NumberOfShards = 2 }
		w.start(1)
		const count = 1000
		for i := range count {
			w.nodes[0].tell(fmt.Sprintf("idle-%d", i), "x")
		}
		pass(3 * time.Minute)
		stopped := 0
		for i := range count {
			stopped += len(w.journal.of(fmt.Sprintf("idle-%d", i), "stop"))
		}
		require.Equal(t, count, stopped)
	})
}
