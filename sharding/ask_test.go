// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// How asks end: first with their context or their deadline, then with a reply that the
// entity may not give or that has another type than was asked for, and last with a reply
// that waits for a full lane. Two tests are about tells: how long one takes counts for the
// messages behind it, and an accepted one does not expire.

// An ask ends with its context, or after a minute. When its message has left this node, or
// the entity has begun it, the outcome is unknown; a message that still waits on this node
// is taken back. A message that has not begun when its ask ends never begins.
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

// A run reads the clock again after a tell that took long: an ask that expired meanwhile
// does not begin, and the next message counts as begun when it does. Both once counted from
// the beginning of the tell: expired asks began, and busy entities were reported as stuck.
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

// The error of an ask contains the cause with which the caller canceled its context.
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

// The records of asks are reused: an ask that ends early leaves no reply behind that the
// next ask could get.
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

// However an ask ends, by its reply, by its context or by both at one moment, its asker gets
// its own reply or the cause of its own context, and what was not delivered has not been
// handled. The records of asks are used again by askers that run at the same time.
func TestEachAskEndsForItself(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var quits sync.Map // What cancels the context of an ask, by its message.
		w.kind = func(n *node, k *sharding.Kind[text]) {
			k.New = func(*sharding.Context) sharding.Entity[text] { return &quitter{&actor{n: n}, &quits} }
		}
		w.start(2)
		n := w.nodes[0]
		ids := append(n.hosted(n, 2), n.hosted(w.nodes[1], 2)...)
		const askers, rounds = 8, 200
		var asking sync.WaitGroup
		var ends [endUnknown + 1]atomic.Int64
		faults := make(chan error, askers)
		for asker := range askers {
			asking.Go(func() { // Ends after its rounds; waited for below.
				for round := range rounds {
					id, what := ids[round%len(ids)], fmt.Sprintf("q %d %d ", asker, round)
					end, err := endOf(n, &quits, id, what, (asker+round/len(ids))%4)
					if err == nil && end == endNotDelivered && len(w.journal.of(id, what)) > 0 {
						err = fmt.Errorf("%s was not delivered, and handled", what)
					}
					if err != nil {
						faults <- err
						return
					}
					ends[end].Add(1)
				}
			})
		}
		asking.Wait()
		close(faults)
		for err := range faults {
			require.NoError(t, err)
		}
		for _, id := range ids {
			seen := map[string]bool{}
			for _, e := range w.journal.of(id, "q ") {
				require.False(t, seen[e.what], e.what)
				seen[e.what] = true
			}
		}
		require.NotZero(t, ends[endReply].Load())
		require.NotZero(t, ends[endNotDelivered].Load()+ends[endUnknown].Load())
	})
}

// quitter is an actor that cancels the context of who asks, if it can, and replies.
type quitter struct {
	*actor

	quits *sync.Map
}

func (q *quitter) Receive(c *sharding.Context, m text) error {
	if quit, ok := q.quits.LoadAndDelete(m.GetValue()); ok {
		defer quit.(func())()
	}
	return q.actor.Receive(c, m)
}

// How an ask ends.
const (
	endReply = iota
	endNotDelivered
	endUnknown
)

// endOf asks with one of four kinds of contexts: one that does not end, one with a deadline,
// one that is canceled at once by another goroutine, and one that the entity cancels as it
// replies. It returns how the ask ended, and an error if it may not end so.
func endOf(n *node, quits *sync.Map, id, what string, kind int) (end int, fault error) {
	cause := errors.New(what)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	switch kind {
	case 0:
		ctx = context.Background()
	case 1:
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, cause)
		defer stop()
	case 2:
		go cancel(cause) // Ends at once.
	default:
		quits.Store(what, func() { cancel(cause) })
	}
	reply, err := sharding.Ask[text](ctx, n.region, id, say(what))
	switch {
	case err == nil && reply.GetValue() == "heard "+what:
		return endReply, nil
	case err == nil:
		return 0, fmt.Errorf("the reply to %q is %q", what, reply.GetValue())
	case kind < 2 || !errors.Is(err, cause):
		return 0, fmt.Errorf("the ask %q with context %d: %w", what, kind, err)
	case errors.Is(err, sharding.ErrNotDelivered):
		return endNotDelivered, nil
	case errors.Is(err, sharding.ErrUnknownOutcome):
		return endUnknown, nil
	default:
		return 0, err
	}
}

// A region that is refused between the check of an ask and its entry in the table of asks
// ends that ask all the same.
func TestARefusalReachesAnAskOnItsWay(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		refused := &sharding.SettingsError{Kind: "test", Setting: "role"}
		var n *node
		w.kind = func(_ *node, k *sharding.Kind[text]) {
			k.Codec = hooked{Protobuf: sharding.Protobuf{}, append: func() { n.region.Refuse(refused) }}
			k.Role = "nobody" // No shard has a home, so that messages wait in the window.
		}
		w.form(1)
		n = w.nodes[0]
		n.startKind()
		before := time.Now()
		_, err := sharding.Ask[text](t.Context(), n.region, "a", say("x"))
		require.ErrorIs(t, err, refused)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		require.Zero(t, time.Since(before))
	})
}

// hooked is a codec that calls a function before it encodes a message.
type hooked struct {
	sharding.Protobuf

	append func()
}

func (h hooked) Append(dst []byte, message any) ([]byte, error) {
	h.append()
	return h.Protobuf.Append(dst, message)
}

// Asks without a deadline that wait at once, and many more that were answered before, all
// end after a minute, and no goroutine or timer of an ask stands behind them.
func TestAsksWithoutADeadlineEndByOneTimer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		n, before := w.nodes[0], goroutines()
		const asks = 50
		ended := make(chan error, asks)
		n.tell("a", "wait")
		began := time.Now()
		for i := range asks {
			go func() { // Ends with its ask.
				_, err := sharding.Ask[text](context.Background(), n.region, "a", say("late"))
				ended <- err
			}()
			pass(time.Millisecond)
			n.must(fmt.Sprintf("other-%d", i), "x")
		}
		require.LessOrEqual(t, goroutines()-before, asks+2, "one for each asker, and that of the entity")
		for range asks {
			require.ErrorContains(t, within(t, ended), "minute")
			require.GreaterOrEqual(t, time.Since(began), time.Minute)
			require.Less(t, time.Since(began), time.Minute+100*time.Millisecond)
		}
	})
}

// A tell that was accepted does not end with the context under which it was sent.
func TestAnAcceptedTellDoesNotExpire(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		for _, host := range w.nodes {
			id := w.nodes[0].on(host)
			w.nodes[0].tell(id, "wait")
			require.NoError(t, w.nodes[0].region.Tell(patience.Expiring(t, time.Second), id, say("n 1")))
			pass(2 * time.Second)
		}
		w.release()
		for _, host := range w.nodes {
			id := w.nodes[0].on(host)
			w.nodes[0].must(id, "x")
			w.inOrder(id, "n", 1)
		}
	})
}

// An entity that gives no reply, two replies, or one that cannot be sent fails its message.
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
					continue // In the asker's own process the reply is not encoded, and this fails nothing.
				}
				_, err := w.nodes[0].ask(id, command, limit)
				require.ErrorIs(t, err, sharding.ErrEntityFailed, command)
				require.ErrorContains(t, err, detail)
				w.nodes[0].must(id, "x") // Without a success the entity would rest after the next failure.
			}
		}
	})
}

// A reply that cannot be sent to another node fails the message, and does not stop the
// entity.
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

// A reply of another type than was asked for is an error of the caller. A reply type that
// is no pointer is refused before anything is sent.
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
		other, err := sharding.Ask[*wrapperspb.BytesValue](t.Context(), w.nodes[0].region, there, say("number"))
		require.NoError(t, err, "the field of the reply is one that this message does not know")
		require.Empty(t, other.GetValue())
		_, err = sharding.Ask[*int](t.Context(), w.nodes[0].region, there, say("number"))
		require.ErrorIs(t, err, sharding.ErrInvalid)
		require.ErrorContains(t, err, "reply: ")
		_, err = sharding.Ask[string](t.Context(), w.nodes[0].region, "unasked", say("x"))
		require.ErrorIs(t, err, sharding.ErrInvalid)
		require.ErrorContains(t, err, "replies are pointers, asked for string")
		require.Empty(t, w.journal.of("unasked", ""))
	})
}

// Replies that do not fit into the lane wait until it has room: every asker gets its reply,
// also when all of them ask at once while the link is cut for a moment.
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
