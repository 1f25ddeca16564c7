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

// Timers of entities and their receive timeout: first when a timer rings, how it is replaced
// and canceled, what it may do and when it ends; then the receive timeout; last what both
// mean for an entity that is idle.

// A timer runs once, at its time. When the entity handles a message at that time, the timer
// waits for its turn among the messages.
func TestATimerRunsBetweenMessages(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		n := w.nodes[0]
		n.must("a", "after tea 5s")
		set := time.Now()
		pass(5*time.Second - 1)
		require.Empty(t, w.journal.of("a", "rang"))
		pass(1)
		rang := w.journal.of("a", "rang tea")
		require.Len(t, rang, 1)
		require.Equal(t, 5*time.Second, rang[0].at.Sub(set))
		pass(time.Minute)
		require.Len(t, w.journal.of("a", "rang tea"), 1, "once")

		n.must("a", "after busy 1s")
		busy := n.asked("a", "wait")
		behind := n.asked("a", "x")
		pass(2 * time.Second)
		last := n.asked("a", "y")
		require.Empty(t, w.journal.of("a", "rang busy"), "not while it handles a message")
		w.release()
		for _, r := range []<-chan error{busy, behind, last} {
			require.NoError(t, within(t, r))
		}
		require.Equal(t, []string{"x", "rang busy", "y"}, w.tail("a", 3), "in its turn")
	})
}

// tail returns the last n entries of an entity in the journal.
func (w *world) tail(id string, n int) []string {
	words := w.journal.words(id, "")
	return words[len(words)-n:]
}

// A new timer replaces the timer with the same name. A timer is canceled by its name, also
// when it has rung and waits for its turn.
func TestTimersHaveNames(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		n := w.nodes[0]
		n.must("a", "after one 1s")
		n.must("a", "after two 1s")
		n.must("a", "after one 3s")
		require.Equal(t, "true", n.must("a", "cancel two"))
		require.Equal(t, "false", n.must("a", "cancel two"))
		require.Equal(t, "false", n.must("a", "cancel three"))
		pass(2 * time.Second)
		require.Empty(t, w.journal.of("a", "rang"))
		pass(time.Second)
		require.Len(t, w.journal.of("a", "rang one"), 1)

		n.must("a", "after four 1s")
		busy := n.asked("a", "wait")
		canceled := n.asked("a", "cancel four")
		pass(2 * time.Second)
		w.release()
		require.NoError(t, within(t, busy))
		require.NoError(t, within(t, canceled))
		pass(time.Second)
		require.Empty(t, w.journal.of("a", "rang four"))
	})
}

// A timer may set the next timer, and send. A timer that fails makes the entity fail, which
// is started anew without its timers.
func TestWhatTimersDo(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		n := w.nodes[0]
		n.must("a", "after tick 1s after tick 1s pass b")
		pass(2 * time.Second)
		require.Len(t, w.journal.of("a", "rang tick"), 2)
		require.Len(t, w.journal.of("b", "passed by a"), 1)
		for command, panics := range map[string]uint64{"fail": 0, "panic": 1, "exit": 1} {
			id := "c-" + command
			before := n.system.Stats()
			n.must(id, "after later 10s")
			n.must(id, "after bad 1s "+command)
			pass(time.Second)
			require.Len(t, w.journal.of(id, "stop"), 1)
			n.must(id, "x")
			require.Len(t, w.journal.of(id, "start"), 2)
			pass(time.Minute)
			require.Empty(t, w.journal.of(id, "rang later"), "it ended with its instance")
			require.Equal(t, panics, n.system.Stats().Panics-before.Panics)
			require.Zero(t, n.system.Stats().Failed, "nobody sent it")
		}
	})
}

// Timers end with the instance that set them: when it is passivated, and when its shard
// moves. A timer that Stop sets does not ring.
func TestTimersEndWithTheInstance(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		n := w.nodes[0]
		id := n.on(w.nodes[1])
		n.must(id, "after later 30s")
		ctx := patience.Context(t)
		require.NoError(t, w.nodes[1].Leave(ctx))
		n.must(id, "x")
		n.must("a", "after later 30s")
		n.must("a", "passivate")
		n.must("a", "x")
		n.must("late-timer", "passivate")
		pass(time.Minute)
		require.Empty(t, w.journal.of(id, "rang"))
		require.Empty(t, w.journal.of("a", "rang"))
		require.Empty(t, w.journal.of("late-timer", "rang"), "set by Stop")
	})
}

// No timer runs without standing. A timer that has rung meanwhile runs when the standing is
// back.
func TestTimersRespectTheStanding(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(m *membership.Config, _ *sharding.Config) {
			m.Downing.StableAfter = downing.AutoDuration(time.Minute)
		}
		w.start(3)
		lost := w.nodes[2]
		id := lost.on(lost)
		w.cut(lost)
		lost.tell(id, "after tea 20s")
		eventually(t, "the standing ends", func() bool { return !lost.Standing().Held() })
		pass(20 * time.Second)
		require.Empty(t, w.journal.of(id, "rang"))
		w.network.HealAll()
		eventually(t, "it runs", func() bool { return len(w.journal.of(id, "rang")) == 1 })
		require.True(t, lost.Standing().Held())
	})
}

// ReceiveTimeout is called when an entity has had no message for the time that it set, and
// again after each such time. A message begins the time anew; the entity can change the
// time, and switch it off.
func TestReceiveTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		n := w.nodes[0]
		n.must("a", "patience 10s")
		pass(6 * time.Second)
		n.must("a", "x")
		said := time.Now()
		pass(10*time.Second - 1)
		require.Empty(t, w.journal.of("a", "timeout"))
		pass(1)
		timeouts := w.journal.of("a", "timeout")
		require.Len(t, timeouts, 1)
		require.Equal(t, 10*time.Second, timeouts[0].at.Sub(said))
		pass(20 * time.Second)
		require.Len(t, w.journal.of("a", "timeout"), 3)
		n.must("a", "patience 5s")
		pass(5 * time.Second)
		require.Len(t, w.journal.of("a", "timeout"), 4)
		busy := n.asked("a", "wait")
		pass(20 * time.Second)
		require.Len(t, w.journal.of("a", "timeout"), 4, "not while it is at a message")
		w.release()
		require.NoError(t, within(t, busy))
		pass(10 * time.Second)
		require.Len(t, w.journal.of("a", "timeout"), 6)
		n.must("a", "patience 0s")
		pass(time.Minute)
		require.Len(t, w.journal.of("a", "timeout"), 6)
	})
}

// An idle entity that has a timer or a receive timeout is not passivated, since both would
// end with it. Without them it is.
func TestTimersKeepAnEntity(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		n := w.nodes[0]
		n.must("patient", "patience 3m")
		n.must("timer", "after tea 3m")
		pass(10 * time.Minute)
		require.Len(t, w.journal.of("patient", "timeout"), 3)
		require.Empty(t, w.journal.of("patient", "stop"))
		require.Len(t, w.journal.of("timer", "rang"), 1)
		require.Len(t, w.journal.of("timer", "stop"), 1, "it had rung")
		n.must("patient", "patience 0s")
		pass(3 * time.Minute)
		require.Len(t, w.journal.of("patient", "stop"), 1)
	})
}

// An entity whose ReceiveTimeout fails is stopped as after any failure. An entity without
// that method is stopped when the time has passed.
func TestReceiveTimeoutsThatEndAnEntity(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(n *node, k *sharding.Kind[text]) {
			k.New = func(c *sharding.Context) sharding.Entity[text] {
				if c.ID() == "plain" {
					c.SetReceiveTimeout(time.Second) // The time may be set as early as in New.
					return &plain{&actor{n: n}}
				}
				return &actor{n: n}
			}
		}
		w.start(1)
		n := w.nodes[0]
		n.must("impatient", "patience 1s")
		n.must("plain", "x")
		pass(time.Second)
		synctest.Wait()
		require.Len(t, w.journal.of("impatient", "stop"), 1)
		require.Len(t, w.journal.of("plain", "stop"), 1)
		n.must("impatient", "x")
		n.must("plain", "x")
	})
}

// plain is an actor without the method ReceiveTimeout.
type plain struct{ a *actor }

func (p *plain) Receive(c *sharding.Context, m text) error { return p.a.Receive(c, m) }

func (p *plain) Stop(c *sharding.Context) { p.a.Stop(c) }
