// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/machine/meter/metertest"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// readers holds the reader of each node of a world.
type readers []*metertest.Reader

// sum adds a metric up over all nodes.
func (all readers) sum(t *testing.T, name string, with ...attribute.KeyValue) (sum float64) {
	t.Helper()
	for _, r := range all {
		sum += r.Value(t, "quorate.sharding."+name, with...)
	}
	return sum
}

// metered starts n nodes with the kind, each with a reader of its metrics.
func (w *world) metered(n int) (all readers) {
	w.t.Helper()
	for range n {
		all = append(all, metertest.New())
		w.options = []sharding.Option{sharding.WithMeterProvider(all[len(all)-1].Provider())}
		w.build()
	}
	w.start(0)
	return all
}

func fault(word string) attribute.KeyValue { return attribute.String("error.type", word) }

// An ask of a sampled trace is kept as an exemplar of its duration, one of a trace that is not sampled is not. That is
// so for an ask that has failed too, when its context is over.
func TestAsksOfSampledTracesAreExemplars(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		all := w.metered(2)
		far := w.nodes[0].hosted(w.nodes[1], 1)[0]
		ask := func(id byte, flags trace.TraceFlags, command string, limit time.Duration) trace.TraceID {
			parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{id}, SpanID: trace.SpanID{1}, TraceFlags: flags})
			ctx, cancel := context.WithTimeout(trace.ContextWithSpanContext(t.Context(), parent), limit)
			defer cancel()
			_, _ = sharding.Ask[text](ctx, w.nodes[0].region, far, say(command))
			return parent.TraceID()
		}
		answered := ask(1, trace.FlagsSampled, "hello", time.Second)
		ask(2, 0, "hello", time.Second)
		expired := ask(3, trace.FlagsSampled, "nap-long", time.Millisecond)
		var kept []trace.TraceID
		for _, p := range all[0].Points(t, "quorate.sharding.ask.duration") {
			kept = append(kept, p.Traces...)
		}
		require.ElementsMatch(t, []trace.TraceID{answered, expired}, kept)
	})
}

// Shards, entities, messages and asks are counted once each, first in good health, then
// with failures of all sorts.
func TestMetricsOfMessages(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		all := w.metered(3)
		pass(time.Second) // The shards without a message are on their way to their homes still.
		kind := attribute.String("quorate.kind", "test")
		require.InDelta(t, 12, all.sum(t, "shards.hosted", kind), 0)
		require.InDelta(t, 12, all.sum(t, "shards", attribute.String("quorate.shard.phase", "serving")), 0)
		require.Len(t, all[0].Points(t, "quorate.sharding.shards"), 3, "the oldest coordinates")
		require.Empty(t, all[1].Points(t, "quorate.sharding.shards"))
		far, near := w.nodes[0].hosted(w.nodes[1], 1)[0], w.nodes[0].hosted(w.nodes[0], 1)[0]
		sent, handled := all.sum(t, "messages.sent"), all.sum(t, "messages.handled")
		asked := all[0].Value(t, "quorate.sharding.ask.duration")
		received := all[1].Value(t, "quorate.sharding.messages.received")
		for range 10 {
			w.nodes[0].tell(far, "hello")
			w.nodes[0].tell(near, "hello")
		}
		w.nodes[0].must(far, "hello")
		w.nodes[0].must(near, "hello")
		pass(time.Second)
		require.InDelta(t, sent+22, all.sum(t, "messages.sent", kind), 0)
		require.InDelta(t, handled+22, all.sum(t, "messages.handled", kind), 0)
		require.InDelta(t, received+11, all[1].Value(t, "quorate.sharding.messages.received"), 0)
		require.GreaterOrEqual(t, all.sum(t, "entities"), 3.0)
		require.GreaterOrEqual(t, all.sum(t, "entities.started"), all.sum(t, "entities"))
		require.InDelta(t, asked+2, all[0].Value(t, "quorate.sharding.ask.duration", kind), 0)
		require.Zero(t, all.sum(t, "messages.waiting"))

		_, err := w.nodes[0].ask(near, "fail", time.Second)
		require.ErrorIs(t, err, sharding.ErrEntityFailed)
		require.InDelta(t, 1, all.sum(t, "ask.duration", fault("entity-failed")), 0)
		require.InDelta(t, 1, all.sum(t, "entities.failures", attribute.String("quorate.entity.failure", "message")), 0)
		w.nodes[0].must(near, "hello")
		require.InDelta(t, 1, all.sum(t, "entities.restarted"), 0)
		_, err = w.nodes[0].ask("", "hello", time.Second)
		require.ErrorIs(t, err, sharding.ErrInvalid)
		require.InDelta(t, 1, all.sum(t, "ask.duration", fault("invalid")), 0)
		_, err = w.nodes[0].ask("bad-start", "hello", time.Second)
		require.ErrorIs(t, err, sharding.ErrEntityFailed)
		require.InDelta(t, 1, all.sum(t, "entities.failures", attribute.String("quorate.entity.failure", "start")), 0)
		require.InDelta(t, 1, all.sum(t, "messages.refused", fault("entity-failed")), 0, "one ask was refused, the other failed")
		_, err = w.nodes[0].ask(near, "panic", time.Second)
		require.ErrorIs(t, err, sharding.ErrEntityFailed)
		require.InDelta(t, 1, all.sum(t, "entities.panics"), 0)
		require.Equal(t, "good night", w.nodes[0].must(far, "passivate"))
		pass(time.Second)
		require.InDelta(t, 1, all.sum(t, "entities.passivated"), 0)
	})
}

// Messages that wait are counted by the queue in which they wait, and an entity that does
// not return is counted as stuck.
func TestMetricsOfWhatWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, c *sharding.Config) {
			c.PassivateAfter, c.StuckAfter = 0, 10*time.Second
		}
		all := w.metered(2)
		a, b := w.nodes[0].hosted(w.nodes[0], 1)[0], w.nodes[0].hosted(w.nodes[1], 1)[0]
		w.nodes[0].tell(a, "wait")
		pass(time.Second)
		for range 5 {
			w.nodes[0].tell(a, "hello")
		}
		w.nodes[1].tell("other", "wait")
		pass(40 * time.Second)
		mailbox, window := attribute.String("quorate.queue", "mailbox"), attribute.String("quorate.queue", "window")
		require.InDelta(t, 5, all.sum(t, "messages.waiting", mailbox), 0)
		require.InDelta(t, 5, all.sum(t, "mailbox.deepest"), 0)
		require.InDelta(t, 2, all.sum(t, "entities.stuck"), 0)
		w.cut(w.nodes[1])
		for range 7 {
			w.nodes[0].tell(b, "hello")
		}
		require.InDelta(t, 7, all[0].Value(t, "quorate.sharding.messages.waiting", window), 0)
		w.release()
		pass(20 * time.Second)
		require.Zero(t, all.sum(t, "messages.waiting", mailbox))
		require.Zero(t, all.sum(t, "entities.stuck"))
	})
}

// The coordinator measures how long moves take, and a node that has ended has no metrics.
func TestMetricsOfMoves(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		all := w.metered(2)
		require.NoError(t, w.nodes[1].LeaveMember(t.Context(), address(1)))
		require.NoError(t, w.nodes[1].system.AwaitEnd(t.Context()))
		moved := attribute.String("quorate.move.outcome", "moved")
		require.InDelta(t, 6, all[0].Value(t, "quorate.sharding.move.duration", moved), 0, "half of twelve")
		for _, p := range all[0].Points(t, "quorate.sharding.move.duration") {
			require.Less(t, p.Sum/p.Value, 1.0)
		}
		require.Empty(t, all[1].Points(t, "quorate.sharding.shards.hosted"), "a node that has ended is not observed")
		require.InDelta(t, 12, all[0].Value(t, "quorate.sharding.shards.hosted"), 0)
	})
}
