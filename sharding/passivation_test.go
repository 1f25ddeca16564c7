// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"fmt"
	"strings"
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

// live are the entities of those given that run.
func (w *world) live(ids []string) (live []string) {
	for _, id := range ids {
		if len(w.journal.of(id, "start")) > len(w.journal.of(id, "stop")) {
			live = append(live, id)
		}
	}
	return live
}

// many are n ids, of which the first is used when the node starts.
func many(n int) (ids []string) {
	ids = []string{"first"}
	for i := range n - 1 {
		ids = append(ids, fmt.Sprintf("many-%d", i))
	}
	return ids
}

// A node has no more entities than the limit, however many shards they are in, be the limit below
// the number of shards; and those that were used last remain.
func TestALimitHoldsForTheNode(t *testing.T) {
	for _, policy := range []string{"least-recently-used", "most-recently-used", "segmented", "least-frequently-used", "composite", "w-tinylfu"} {
		for _, most := range []int{1, 5, 40} {
			t.Run(fmt.Sprint(policy, " ", most), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					w.config = func(_ *membership.Config, s *sharding.Config) {
						s.Passivation.ActiveEntityLimit, s.Passivation.Policy = most, policy
					}
					w.start(1)
					ids := many(100)
					for _, id := range ids {
						w.nodes[0].must(id, "x")
						pass(20 * time.Millisecond)
						require.LessOrEqual(t, len(w.live(ids)), most)
					}
					live := w.live(ids)
					require.Len(t, live, most)
					if policy == "least-recently-used" {
						require.Equal(t, ids[100-most:], live)
					}
				})
			})
		}
	}
}

// Who was used makes room after those who were not, though it is there for longer; a use is known to the
// limit whichever shard the entities are in.
func TestUsesCountForTheLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) {
			s.Passivation.ActiveEntityLimit, s.Passivation.Policy = 3, "least-recently-used"
		}
		w.start(1)
		n, ids := w.nodes[0], many(10)
		for _, id := range ids[:3] {
			n.must(id, "x")
		}
		for _, id := range ids[3:] {
			for range 16 { // As many as a shard tells at a time.
				n.must(ids[0], "x")
			}
			n.must(id, "x")
			pass(20 * time.Millisecond)
			require.Contains(t, w.live(ids), ids[0])
		}
		require.Equal(t, []string{ids[0], ids[8], ids[9]}, w.live(ids))
	})
}

// A limit that is changed holds soon, one that is taken away stops nobody, and another policy
// knows those that run.
func TestALimitIsReloaded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var cfg sharding.Config
		w.config = func(_ *membership.Config, s *sharding.Config) { s.PassivateAfter = 0; cfg = *s }
		w.start(1)
		n, ids := w.nodes[0], many(30)
		use := func() {
			for _, id := range ids {
				n.must(id, "x")
			}
			pass(20 * time.Millisecond)
		}
		reload := func(most int, policy string) []string {
			cfg.NumberOfShards = 12
			cfg.Passivation.ActiveEntityLimit, cfg.Passivation.Policy = most, policy
			require.NoError(t, n.system.Reload(cfg))
			pass(20 * time.Millisecond)
			return w.live(ids)
		}
		use()
		require.Len(t, w.live(ids), 30)
		require.Len(t, reload(10, "least-recently-used"), 10, "those that ran before it count")
		use()
		require.Len(t, reload(7, "least-recently-used"), 7)
		require.Len(t, reload(0, "least-recently-used"), 7)
		use()
		require.Len(t, w.live(ids), 30)
		require.Len(t, reload(20, "w-tinylfu"), 20)
		require.Len(t, reload(5, "segmented"), 5)
		use()
		require.Len(t, w.live(ids), 5)
	})
}

// Who is at work or has a timer is not stopped to make room, and is when that is over. Permanent
// entities neither give way nor count.
func TestTheBusyAreSpared(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.PassivateAfter = 0 }
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.EntityLimit, k.Permanent = 2, []string{"always"} }
		w.start(1)
		n, ids := w.nodes[0], many(10)
		for _, id := range ids[:4] {
			n.tell(id, "nap-long")
		}
		pass(time.Second)
		require.Equal(t, ids[:4], w.live(ids))
		for _, id := range ids[4:] {
			n.must(id, "x")
		}
		pass(100 * time.Millisecond)
		require.Equal(t, ids[:4], w.live(ids), "all who are not at work go")
		pass(40 * time.Second)
		require.Len(t, w.live(ids), 2)
		require.Len(t, w.live([]string{"always"}), 1)
	})
}

// Messages to entities that make room for each other all the time are handled once and in order, and
// the explanation says why one was stopped.
func TestMakingRoomLosesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.Passivation.ActiveEntityLimit = 3 }
		w.start(2)
		ids := many(12)
		const count = 50
		for i := range count {
			for _, id := range ids {
				w.nodes[i%2].tell(id, fmt.Sprintf("from-%d %d", i%2, i/2+1))
			}
			pass(time.Duration(i%7) * time.Millisecond)
		}
		pass(time.Second)
		for _, id := range ids {
			for i := range 2 {
				w.inOrder(id, fmt.Sprintf("from-%d", i), count/2)
			}
		}
		require.LessOrEqual(t, len(w.live(ids)), 6)
		explained := 0
		for _, id := range ids {
			for _, n := range w.nodes {
				x, err := n.region.Explain(t.Context(), id)
				require.NoError(t, err)
				if strings.Contains(fmt.Sprint(x.Pending), "to make room, by w-tinylfu: the limit of its kind on this node is 3") {
					explained++
				}
			}
		}
		require.GreaterOrEqual(t, explained, 6)
	})
}
