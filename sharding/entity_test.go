// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// The life of an entity when its methods fail: first Receive, then Start and New, then Stop;
// then entities that do not return, while a node leaves or ends; last what idle and blocked
// entities cost others.

// When an entity returns an error, panics or ends its goroutine, its message fails and the
// entity is stopped. A new instance handles the messages that waited behind that message.
func TestAnEntityThatFailsStartsAnew(t *testing.T) {
	for command, panics := range map[string]uint64{"fail": 0, "panic": 1, "exit": 1} {
		t.Run(command, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.start(2)
				for _, host := range w.nodes {
					id := w.nodes[0].on(host)
					waiting := w.nodes[0].asked(id, "nap")
					failing, behind := w.nodes[0].asked(id, command), w.nodes[0].asked(id, "x")
					require.NoError(t, within(t, waiting))
					err := within(t, failing)
					require.ErrorIs(t, err, sharding.ErrEntityFailed)
					var message *sharding.MessageError
					require.ErrorAs(t, err, &message)
					require.Equal(t, id, message.Entity)
					require.Equal(t, "test", message.Kind)
					require.NotEmpty(t, message.Detail)
					require.NoError(t, within(t, behind))
					require.Len(t, w.journal.of(id, "start"), 2)
					require.Len(t, w.journal.of(id, "stop"), 1)
					require.Equal(t, panics, host.system.Stats().Panics)
				}
			})
		})
	}
}

// Nobody waits for the outcome of a tell, so that a tell that fails is counted on the node
// of its sender.
func TestATellThatFailsIsCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		for i, host := range w.nodes {
			id := w.nodes[0].on(host)
			w.nodes[0].tell(id, "fail")
			eventually(t, "it is counted", func() bool { return w.nodes[0].system.Stats().Failed == uint64(i+1) })
			require.Zero(t, w.nodes[1].system.Stats().Failed)
		}
	})
}

// When an entity cannot start, its messages fail at once for a second, and for longer after
// each further failure. Stop is not called, since the instance never ran.
func TestAnEntityThatCannotStartRests(t *testing.T) {
	for _, id := range []string{"bad-start", "panic-start", "exit-start"} {
		t.Run(id, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.start(1)
				fails := func(tries int, why string) {
					_, err := w.nodes[0].ask(id, "x", limit)
					require.ErrorIs(t, err, sharding.ErrEntityFailed)
					require.Len(t, w.journal.of(id, "start"), tries, why)
				}
				fails(1, "the first try")
				fails(1, "it rests for a second")
				require.ErrorIs(t, w.nodes[0].region.Tell(t.Context(), id, say("x")), sharding.ErrEntityFailed)
				pass(1100 * time.Millisecond)
				fails(2, "the second try")
				pass(1100 * time.Millisecond)
				fails(2, "the second rest is longer")
				pass(time.Second)
				fails(3, "the third try")
				require.Empty(t, w.journal.of(id, "stop"))
				require.Empty(t, w.journal.of(id, "x"))
			})
		})
	}
}

// All messages that wait for a start that fails fail with it.
func TestWhatWaitsForAStartThatFailsIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		id := "bad-start"
		var results []<-chan error
		for _, n := range w.nodes {
			for range 3 {
				results = append(results, n.asked(id, "x"))
			}
		}
		for _, r := range results {
			require.ErrorIs(t, within(t, r), sharding.ErrEntityFailed)
		}
		require.Len(t, w.journal.of(id, "start"), 1)
	})
}

// When New returns nil or panics, the message fails as after a failed start.
func TestNewThatGivesNoEntityFailsTheMessage(t *testing.T) {
	tests := map[string]func(*sharding.Context) sharding.Entity[text]{
		"nil":   func(*sharding.Context) sharding.Entity[text] { return nil },
		"panic": func(*sharding.Context) sharding.Entity[text] { panic("no") },
	}
	for name, create := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.kind = func(n *node, k *sharding.Kind[text]) {
					k.New = func(c *sharding.Context) sharding.Entity[text] {
						if c.ID() == "a" {
							return create(c)
						}
						return &actor{n: n}
					}
				}
				w.start(1)
				_, err := w.nodes[0].ask("a", "x", limit)
				require.ErrorIs(t, err, sharding.ErrEntityFailed)
			})
		})
	}
}

// A Stop that panics or ends its goroutine ends the entity all the same, and the next
// message starts it.
func TestAStopThatFailsEndsTheEntity(t *testing.T) {
	for _, id := range []string{"panic-stop", "exit-stop"} {
		t.Run(id, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.start(2)
				w.nodes[0].must(id, "x")
				_, err := w.nodes[0].ask(id, "fail", limit)
				require.ErrorIs(t, err, sharding.ErrEntityFailed)
				w.nodes[0].must(id, "x")
				require.Len(t, w.journal.of(id, "start"), 2)
				host := w.nodes[w.journal.of(id, "start")[0].node]
				require.EqualValues(t, 1, host.system.Stats().Panics)
				ctx := patience.Context(t)
				require.NoError(t, host.Leave(ctx))
				require.Len(t, w.journal.of(id, "stop"), 2)
			})
		})
	}
}

// An entity whose Receive does not return holds up a leave for as long as leaving may take,
// and no longer. The other entities of the node move as in any leave.
func TestAnEntityThatNeverReturnsHoldsALeaveUpForALimitedTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		leaver := w.nodes[2]
		ids := w.nodes[0].hosted(leaver, 2)
		stuck, fine := ids[0], ids[1]
		w.nodes[0].must(fine, "x")
		result := w.nodes[0].asked(stuck, "wait")
		ctx := patience.Context(t)
		before := time.Now()
		left := make(chan error, 1)
		go func() { left <- leaver.Leave(ctx) }()
		eventually(t, "it has moved", func() bool { return w.nodes[0].must(fine, "where") != leaver.Self().String() })
		require.Less(t, time.Since(before), 10*time.Second)
		require.Len(t, w.journal.of(fine, "stop"), 1)
		_ = within(t, left) // Whether the leave was in order is up to membership.
		require.Less(t, time.Since(before), time.Minute)
		require.ErrorIs(t, within(t, result), sharding.ErrUnknownOutcome)
		w.nodes[0].insist(stuck, "where")
		require.ErrorIs(t, leaver.awaitEnd(time.Second), context.DeadlineExceeded)
		w.release()
		require.NoError(t, leaver.awaitEnd(limit))
		require.Len(t, w.journal.of(stuck, "stop"), 1, "it is stopped when it returns")
	})
}

// An entity whose Stop does not return holds up its own shard for as long as leaving may
// take, and no other shard.
func TestAnEntityThatIgnoresItsStop(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.StuckAfter = time.Second }
		w.start(3)
		other, leaver := w.nodes[0], w.nodes[2]
		stuck := "slow-stop"
		for other.must(stuck, "where") != leaver.Self().String() {
			stuck += "."
		}
		fine := other.on(leaver)
		if shardOf(fine) == shardOf(stuck) {
			fine = other.hosted(leaver, 2)[1]
		}
		other.must(fine, "x")
		before := time.Now()
		left := make(chan error, 1)
		go func() {
			ctx := patience.Context(t)
			left <- leaver.Leave(ctx)
		}()
		eventually(t, "it has moved", func() bool { return other.must(fine, "where") != leaver.Self().String() })
		require.Less(t, time.Since(before), 10*time.Second)
		eventually(t, "it is reported", func() bool { return leaver.system.Stats().Stuck == 1 })
		waiting := other.asked(stuck, "x")
		_ = within(t, left) // Whether the leave was in order is up to membership.
		require.Less(t, time.Since(before), time.Minute)
		require.ErrorIs(t, within(t, waiting), sharding.ErrUnknownOutcome, "it was on its way")
		other.insist(stuck, "x")
		w.release()
		require.NoError(t, leaver.awaitEnd(limit))
	})
}

// A message waits for the start of its entity, and is not delivered when the node ends
// meanwhile. The entity is stopped when its start returns.
func TestANodeThatEndsDuringAStartStopsTheEntity(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		result := w.nodes[0].asked("slow-start", "x")
		require.NoError(t, w.nodes[0].Close())
		require.ErrorIs(t, within(t, result), sharding.ErrNotDelivered)
		w.release()
		require.NoError(t, w.nodes[0].awaitEnd(limit))
		require.Len(t, w.journal.of("slow-start", "stop"), 1)
		require.Empty(t, w.journal.of("slow-start", "x"))
	})
}

// An idle entity has no goroutine: after 1,000 entities have become idle, there are hardly
// more goroutines than before.
func TestIdleEntitiesHaveNoGoroutines(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		w.nodes[0].must("first", "x")
		pass(5 * time.Second) // A goroutine waits for its next job for a while before it ends.
		before := runtime.NumGoroutine()
		for i := range 1000 {
			w.nodes[0].tell(fmt.Sprintf("idle-%d", i), "x")
		}
		pass(5 * time.Second)
		started := 0
		for i := range 1000 {
			started += len(w.journal.of(fmt.Sprintf("idle-%d", i), "x"))
		}
		require.Equal(t, 1000, started)
		require.InDelta(t, before, runtime.NumGoroutine(), 20)
	})
}

// An entity that blocks in Receive holds up no other entity of its shard.
func TestAnEntityThatBlocksHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.NumberOfShards = 1 }
		w.start(2)
		host := w.nodes[0].must("a", "where")
		for _, n := range w.nodes {
			blocked := n.asked("a", "wait")
			n.must("b", "x")
			require.Empty(t, blocked)
		}
		require.Equal(t, host, w.nodes[0].must("b", "where"))
	})
}
