// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// An ask ends with its context, or after a minute. Where its message has left this node,
// or has begun, nobody knows what became of it; one that waits here for its turn is
// taken back. One that had not begun by then never begins.
func TestAsksEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		for _, host := range w.nodes {
			id := w.nodes[0].on(host)
			_, err := w.nodes[0].ask(id, "wait", time.Second)
			require.ErrorIs(t, err, sharding.ErrUnknownOutcome)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			before := time.Now()
			_, err = sharding.Ask[text](t.Context(), w.nodes[0].region, id, say("x"))
			require.ErrorIs(t, err, map[bool]error{true: sharding.ErrNotDelivered, false: sharding.ErrUnknownOutcome}[host == w.nodes[0]])
			require.ErrorContains(t, err, "minute")
			require.Equal(t, time.Minute, time.Since(before))
			require.Equal(t, before.Add(time.Minute), time.Now())
		}
		pass(time.Millisecond)
		w.release()
		for _, host := range w.nodes {
			id := w.nodes[0].on(host)
			w.nodes[0].must(id, "y")
			require.Empty(t, w.journal.of(id, "x"), "nobody waited for it any more")
		}
	})
}

// How long a message took whose sender does not wait is seen by those behind it: what
// expired meanwhile does not begin, and what begins has just begun. It once was not.
func TestTheTimeThatATellTakesCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		n, host := w.nodes[0], w.nodes[1]
		id := n.on(host)
		n.must(id, "x")
		n.tell(id, "nap-long")
		n.tell(id, "wait")
		_, err := n.ask(id, "late", time.Second)
		require.ErrorIs(t, err, sharding.ErrUnknownOutcome)
		pass(80 * time.Second)
		require.Zero(t, host.system.Stats().Stuck, "it has waited for 40 s")
		w.release()
		n.must(id, "y")
		require.Empty(t, w.journal.of(id, "late"), "nobody waited for it any more")
		pass(100 * time.Second)
		require.Empty(t, w.journal.of(id, "stop"), "it has been idle for 100 s")
	})
}

// The cause that a caller gave its context is in the error.
func TestACanceledAskTellsTheCause(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		cause := errors.New("the user went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		result := make(chan error, 1)
		go func() {
			_, err := sharding.Ask[text](ctx, w.nodes[0].region, "a", say("wait"))
			result <- err
		}()
		pass(time.Second)
		cancel(cause)
		require.ErrorIs(t, within(t, result), cause)
		_, err := sharding.Ask[text](ctx, w.nodes[0].region, "b", say("x"))
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		require.Empty(t, w.journal.of("b", ""))
	})
}

// Asks are used again. One that ended early never gets the reply to another.
func TestAsksThatEndedGetNoReplyOfAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		for _, host := range w.nodes {
			id := w.nodes[0].on(host)
			for i := range 50 {
				reply, err := w.nodes[0].ask(id, "nap", time.Duration(i%3)*time.Millisecond)
				if err == nil {
					require.Equal(t, "slept", reply)
				}
				require.Equal(t, "heard x", w.nodes[0].must(id, "x"))
			}
		}
	})
}

// A tell that was accepted does not expire with the context that it was sent
// under.
func TestAnAcceptedTellDoesNotExpire(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		for _, host := range w.nodes {
			id := w.nodes[0].on(host)
			w.nodes[0].tell(id, "wait")
			ctx, cancel := w.ctx(time.Second)
			require.NoError(t, w.nodes[0].region.Tell(ctx, id, say("n 1")))
			pass(2 * time.Second)
			cancel()
		}
		w.release()
		for _, host := range w.nodes {
			id := w.nodes[0].on(host)
			w.nodes[0].must(id, "x")
			w.inOrder(id, "n", 1)
		}
	})
}

// What an entity may not do with its reply fails the message.
func TestRepliesThatFail(t *testing.T) {
	tests := map[string]struct{ detail, remote string }{
		"silent": {detail: "the entity gave no reply"},
		"twice":  {detail: "answered once"},
		"nil":    {detail: "not nil"},
		"long":   {remote: "max-message-bytes is 4000"},
		"int":    {remote: "the reply cannot be encoded"},
	}
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.MaxMessageBytes = 4000 }
		w.start(2)
		here, there := w.nodes[0].on(w.nodes[0]), w.nodes[0].on(w.nodes[1])
		for command, test := range tests {
			for id, detail := range map[string]string{here: test.detail, there: test.detail + test.remote} {
				if detail == "" {
					continue // Of use to those who share the process.
				}
				_, err := w.nodes[0].ask(id, command, limit)
				require.ErrorIs(t, err, sharding.ErrEntityFailed, command)
				require.ErrorContains(t, err, detail)
				w.nodes[0].must(id, "x") // Else it would rest after the next failure.
			}
		}
	})
}

// A reply that cannot travel is no reason to stop the entity.
func TestAReplyThatCannotTravelLeavesTheEntity(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.MaxMessageBytes = 4000 }
		w.start(2)
		id := w.nodes[0].on(w.nodes[1])
		for _, command := range []string{"long", "int", "silent"} {
			_, err := w.nodes[0].ask(id, command, limit)
			require.ErrorIs(t, err, sharding.ErrEntityFailed)
		}
		require.Len(t, w.journal.of(id, "start"), 1)
		require.Empty(t, w.journal.of(id, "stop"))
	})
}

// A reply of another type than was asked for is an error of the caller; one that
// is not a pointer is seen before anything is sent.
func TestRepliesOfAnotherType(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		here, there := w.nodes[0].on(w.nodes[0]), w.nodes[0].on(w.nodes[1])
		_, err := w.nodes[0].ask(here, "number", limit)
		require.ErrorIs(t, err, sharding.ErrInvalid)
		require.ErrorContains(t, err, "the reply is a *wrapperspb.Int64Value")
		reply, err := sharding.Ask[*wrapperspb.Int64Value](t.Context(), w.nodes[0].region, there, say("number"))
		require.NoError(t, err)
		require.EqualValues(t, 1, reply.GetValue())
		_, err = sharding.Ask[*int](t.Context(), w.nodes[0].region, there, say("number"))
		require.ErrorIs(t, err, sharding.ErrInvalid)
		require.ErrorContains(t, err, "reply: ")
		_, err = sharding.Ask[string](t.Context(), w.nodes[0].region, "unasked", say("x"))
		require.ErrorIs(t, err, sharding.ErrInvalid)
		require.ErrorContains(t, err, "replies are pointers, asked for string")
		require.Empty(t, w.journal.of("unasked", ""))
	})
}

// Replies that do not fit into the lane at the moment leave when it has room:
// every asker gets its reply, also when all of them ask at once and the link is
// cut for a moment meanwhile.
func TestRepliesWaitForAFullLane(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(m *membership.Config, _ *sharding.Config) { m.Transport.WindowBytes = 64 << 10 }
		w.start(2)
		id := w.nodes[0].on(w.nodes[1])
		a, b := w.nodes[0].Self().Address, w.nodes[1].Self().Address
		w.network.CutOneWay(b, a)
		var answers []<-chan error
		for range 100 {
			answers = append(answers, w.nodes[0].asked(id, "long"))
		}
		pass(100 * time.Millisecond)
		w.network.HealAll()
		healed := time.Now()
		for _, r := range answers {
			require.NoError(t, within(t, r))
		}
		require.Less(t, time.Since(healed), time.Second)
	})
}
