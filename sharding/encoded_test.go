// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// encodedAsk asks with an encoded message, as for a client that is no member, and returns what came of
// it.
func (n *node) encodedAsk(id, command string, d time.Duration) (string, error) {
	n.w.t.Helper()
	payload, err := proto.Marshal(say(command))
	require.NoError(n.w.t, err)
	answers := make(chan sharding.Answer, 2)
	wait := sharding.EncodedOf(n.system, "test").Ask(n.w.t.Context(), id, payload, time.Now().Add(d), "", func(a sharding.Answer) { answers <- a })
	if wait != nil {
		wait()
	}
	b, err := within(n.w.t, answers).Append(nil)
	if err != nil {
		return "", err
	}
	reply := say("")
	require.NoError(n.w.t, proto.Unmarshal(b, reply))
	require.Empty(n.w.t, answers, "there is one answer")
	return reply.GetValue(), nil
}

// Encoded asks and tells take all ways: to this node and to another one, to entities at rest and at
// work.
func TestEncodedMessagesTakeAllWays(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		a := w.nodes[0]
		here, there := a.on(a), a.on(w.nodes[1])
		for i, id := range []string{here, there, here, there} {
			got, err := a.encodedAsk(id, "where", limit)
			require.NoError(t, err)
			require.Equal(t, w.nodes[i%2].Self().String(), got)
			payload, err := proto.Marshal(say("s " + string(rune('1'+i/2))))
			require.NoError(t, err)
			told := make(chan error, 1)
			require.Nil(t, sharding.EncodedOf(a.system, "test").Tell(t.Context(), id, payload, time.Now().Add(limit), "", func(err error) { told <- err }))
			require.NoError(t, within(t, told))
		}
		pass(time.Second)
		w.inOrder(here, "s", 2)
		w.inOrder(there, "s", 2)

		e := sharding.EncodedOf(a.system, "test")
		_, away := e.Elsewhere(here)
		require.False(t, away)
		place, away := e.Elsewhere(there)
		require.True(t, away)
		require.Equal(t, sharding.Place{Shard: int(shardOf(there)), Shards: 12, Home: w.nodes[1].Self()}, place)
		require.Nil(t, sharding.EncodedOf(a.system, "other"))
		require.Positive(t, sharding.EncodedBytesMax(a.system))
	})
}

// What no entity could get is refused before anything is done, and a deadline that has passed as well.
func TestEncodedMessagesAreChecked(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.MaxMessageBytes = 100 }
		w.start(1)
		a := w.nodes[0]
		for _, id := range []string{"", strings.Repeat("x", 513), "\xff"} {
			_, err := a.encodedAsk(id, "where", limit)
			require.ErrorIs(t, err, sharding.ErrInvalid)
		}
		_, err := a.encodedAsk("a", strings.Repeat("x", 200), limit)
		require.ErrorIs(t, err, sharding.ErrInvalid)
		_, err = a.encodedAsk("a", "where", 0)
		require.ErrorIs(t, err, sharding.ErrExpired)
		done := make(chan sharding.Answer, 1)
		e := sharding.EncodedOf(a.system, "test")
		e.Ask(t.Context(), "a", []byte{0xff}, time.Now().Add(limit), "", func(a sharding.Answer) { done <- a })
		_, err = within(t, done).Append(nil)
		require.ErrorIs(t, err, sharding.ErrEntityFailed, "it cannot be decoded")
		e.Ask(t.Context(), "a", nil, time.Now().Add(limit), strings.Repeat("0", 600), func(a sharding.Answer) { done <- a })
		_, err = within(t, done).Append(nil)
		require.ErrorIs(t, err, sharding.ErrInvalid)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e.Ask(ctx, "a", nil, time.Now().Add(limit), "", func(a sharding.Answer) { done <- a })
		_, err = within(t, done).Append(nil)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		require.Equal(t, a.Self().String(), a.must("a", "where"), "the entity is well")
	})
}

// An ask ends at its deadline whatever the entity does: unknown if it has begun, given back if not.
func TestEncodedAsksEndAtTheirDeadlines(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		a := w.nodes[0]
		_, err := a.encodedAsk("a", "wait", time.Second)
		require.ErrorIs(t, err, sharding.ErrUnknownOutcome)
		_, err = a.encodedAsk("a", "where", time.Second)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// A message that finds no room waits until its deadline, on the goroutine of the caller.
func TestEncodedMessagesWaitForRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.MailboxSize = 1 }
		w.start(1)
		a := w.nodes[0]
		first := a.asked("a", "wait")
		second := a.asked("a", "where")
		_, err := a.encodedAsk("a", "where", time.Second)
		require.ErrorIs(t, err, sharding.ErrOverloaded)
		late := make(chan error, 1)
		go func() {
			_, err := a.encodedAsk("a", "where", limit)
			late <- err
		}()
		pass(time.Second)
		w.release()
		require.NoError(t, within(t, first))
		require.NoError(t, within(t, second))
		require.NoError(t, within(t, late))
	})
}

// A node without standing sends encoded messages back at once: the client can ask another one. So does one that
// has ended.
func TestNodesWithoutStandingSendEncodedMessagesBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		a := w.nodes[0]
		id := a.on(w.nodes[1])
		w.cut(a)
		eventually(t, "the node has lost its standing", func() bool { return !a.Standing().Held() })
		began := time.Now()
		_, err := a.encodedAsk(id, "where", limit)
		require.ErrorIs(t, err, sharding.ErrNoStanding)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		require.Zero(t, time.Since(began))
		require.NoError(t, a.Close())
		require.NoError(t, a.awaitEnd(limit))
		_, err = a.encodedAsk(id, "where", limit)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
	})
}
