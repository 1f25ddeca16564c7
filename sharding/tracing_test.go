// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/sharding"
)

// The spans of a cluster of two nodes: first those of an ask and of what follows from it,
// then where a trace begins and where it is not sampled, and last the spans of failures.

// traced starts two nodes whose spans are recorded.
func (w *world) traced(sampler sdk.Sampler) (trace.Tracer, *tracetest.SpanRecorder) {
	w.t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder), sdk.WithSampler(sampler))
	w.options = []sharding.Option{sharding.WithTracerProvider(provider)}
	w.start(2)
	return provider.Tracer("test"), recorder
}

// span returns the span with a name and a role in a trace, and expects that there is one.
func span(t *testing.T, r *tracetest.SpanRecorder, id trace.TraceID, name string, role trace.SpanKind) sdk.ReadOnlySpan {
	t.Helper()
	var found []sdk.ReadOnlySpan
	for _, s := range r.Ended() {
		if s.SpanContext().TraceID() == id && s.Name() == name && s.SpanKind() == role {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, "%s, %s", name, role)
	return found[0]
}

// child returns the span that a span is the parent of, and expects that there is one. The
// spans of a message end in no order: its sender may go on after its entity has returned.
func child(t *testing.T, r *tracetest.SpanRecorder, parent trace.SpanContext) sdk.ReadOnlySpan {
	t.Helper()
	var found []sdk.ReadOnlySpan
	for _, s := range r.Ended() {
		if s.SpanContext().TraceID() == parent.TraceID() && s.Parent().SpanID() == parent.SpanID() {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, "below %s", parent.SpanID())
	return found[0]
}

func attributeOf(s sdk.ReadOnlySpan, key attribute.Key) string {
	for _, kv := range s.Attributes() {
		if kv.Key == key {
			return kv.Value.String()
		}
	}
	return ""
}

// An ask across two nodes is one trace of two spans, that of the asker and that of the
// entity. A message that an entity sends while it handles another belongs to the trace of
// that message.
func TestAnAskAcrossTwoNodesIsOneTrace(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		tracer, recorder := w.traced(sdk.AlwaysSample())
		a, far := w.nodes[0], w.nodes[0].hosted(w.nodes[1], 1)[0]
		near := a.hosted(a, 1)[0]
		ctx, root := tracer.Start(t.Context(), "request")
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		reply, err := sharding.Ask[text](ctx, a.region, far, say("trace"))
		require.NoError(t, err)
		id := root.SpanContext().TraceID()
		require.Equal(t, "trace "+id.String()+" true ", reply.GetValue(), "the entity's context belongs to it")
		client := span(t, recorder, id, "test/ask", trace.SpanKindClient)
		server := span(t, recorder, id, "test/ask", trace.SpanKindServer)
		require.Equal(t, root.SpanContext().SpanID(), client.Parent().SpanID())
		require.Equal(t, client.SpanContext().SpanID(), server.Parent().SpanID())
		require.True(t, server.Parent().IsRemote())
		require.Equal(t, a.Self().String(), attributeOf(client, "quorate.node"))
		require.Equal(t, w.nodes[1].Self().String(), attributeOf(server, "quorate.node"))
		require.Equal(t, far, attributeOf(server, "quorate.entity"))
		for _, s := range []sdk.ReadOnlySpan{client, server} {
			require.Equal(t, "quorate", attributeOf(s, "rpc.system.name"))
			require.Equal(t, "test/ask", attributeOf(s, "rpc.method"))
			require.Equal(t, w.nodes[1].Self().Address.String(), attributeOf(s, "server.address")+":"+attributeOf(s, "server.port"), "where the entity lives")
			require.Equal(t, meter.SchemaURL, s.InstrumentationScope().SchemaURL)
			require.NotEmpty(t, s.InstrumentationScope().Version)
		}
		require.Equal(t, a.Self().Address.String(), attributeOf(server, "client.address")+":"+attributeOf(server, "client.port"))
		require.False(t, server.StartTime().Before(client.StartTime()) || server.EndTime().After(client.EndTime()), "one lies within the other")

		recorder.Reset()
		require.NoError(t, a.region.Tell(ctx, far, say("pass "+near)))
		pass(time.Second)
		require.Len(t, recorder.Ended(), 4, "two messages, each sent and handled")
		parent := root.SpanContext()
		for _, of := range []struct {
			name string
			role trace.SpanKind
		}{
			{"send test", trace.SpanKindProducer},
			{"process test", trace.SpanKindConsumer},
			{"send test", trace.SpanKindProducer},
			{"process test", trace.SpanKindConsumer},
		} {
			s := child(t, recorder, parent)
			require.Equal(t, of.name, s.Name())
			require.Equal(t, of.role, s.SpanKind())
			require.Equal(t, codes.Unset, s.Status().Code)
			parent = s.SpanContext()
		}
		require.Equal(t, []string{"by " + far}, w.journal.words(near, "passed "))
	})
}

// An ask begins a trace where there is none, a tell does not.
func TestATellBeginsNoTrace(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		_, recorder := w.traced(sdk.AlwaysSample())
		pass(time.Second)
		recorder.Reset()
		far := w.nodes[0].hosted(w.nodes[1], 1)[0]
		recorder.Reset()
		w.nodes[0].tell(far, "trace")
		pass(time.Second)
		require.Empty(t, recorder.Ended())
		require.Equal(t, []string{"00000000000000000000000000000000 false "}, w.journal.words(far, "trace "))
		w.nodes[0].must(far, "trace")
		require.Len(t, recorder.Ended(), 2)
	})
}

// A trace that is not sampled has no spans. It is passed on as not sampled, so that no
// receiver begins another trace.
func TestATraceThatIsNotSampled(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		tracer, recorder := w.traced(sdk.ParentBased(sdk.NeverSample()))
		far := w.nodes[0].hosted(w.nodes[1], 1)[0]
		state, err := trace.ParseTraceState("vendor=1")
		require.NoError(t, err)
		parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{7}, SpanID: trace.SpanID{8}, TraceState: state})
		ctx, _ := tracer.Start(trace.ContextWithSpanContext(t.Context(), parent), "request")
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		want := parent.TraceID().String() + " false vendor=1"
		reply, err := sharding.Ask[text](ctx, w.nodes[0].region, far, say("trace"))
		require.NoError(t, err)
		require.Equal(t, "trace "+want, reply.GetValue())
		require.NoError(t, w.nodes[0].region.Tell(ctx, far, say("trace")))
		pass(time.Second)
		require.Equal(t, []string{want, want}, w.journal.words(far, "trace "))
		require.Empty(t, recorder.Ended())
	})
}

// Baggage gets to the entity if the program gives a propagator for it, sampled or not, and otherwise stays where it is.
func TestBaggageIsPassedWhenAskedFor(t *testing.T) {
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	for want, given := range map[string]propagation.TextMapPropagator{"tenant=7": both, "": nil} {
		for _, sampler := range []sdk.Sampler{sdk.AlwaysSample(), sdk.NeverSample()} {
			inBubble(t, func(t *testing.T, w *world) {
				w.options = []sharding.Option{sharding.WithTracerProvider(sdk.NewTracerProvider(sdk.WithSampler(sampler))), sharding.WithPropagator(given)}
				w.start(2)
				bag, err := baggage.Parse("tenant=7")
				require.NoError(t, err)
				for _, host := range w.nodes {
					id := w.nodes[0].hosted(host, 1)[0]
					ctx, cancel := context.WithTimeout(baggage.ContextWithBaggage(t.Context(), bag), limit)
					reply, err := sharding.Ask[text](ctx, w.nodes[0].region, id, say("baggage"))
					cancel()
					require.NoError(t, err)
					require.Equal(t, want, reply.GetValue())
				}
			})
		}
	}
}

// A sampler that decides by the parent finds the one of the asker on the node of the entity.
func TestSamplingIsByTheParent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		tracer, recorder := w.traced(sdk.ParentBased(sdk.NeverSample()))
		far := w.nodes[0].hosted(w.nodes[1], 1)[0]
		for flags, spans := range map[trace.TraceFlags]int{trace.FlagsSampled: 3, 0: 0} {
			recorder.Reset()
			parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{7}, SpanID: trace.SpanID{8}, TraceFlags: flags})
			ctx, root := tracer.Start(trace.ContextWithSpanContext(t.Context(), parent), "request")
			ctx, cancel := context.WithTimeout(ctx, limit)
			_, err := sharding.Ask[text](ctx, w.nodes[0].region, far, say("hello"))
			cancel()
			root.End()
			require.NoError(t, err)
			require.Len(t, recorder.Ended(), spans)
		}
	})
}

// What is logged about a message has the trace to which the message belongs, and the span of the entity.
func TestLinesAboutAMessageAreOfItsTrace(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lines := new(tracedLines)
		recorder := tracetest.NewSpanRecorder()
		provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
		w.options = []sharding.Option{sharding.WithTracerProvider(provider), sharding.WithLogger(slog.New(lines))}
		w.start(2)
		far := w.nodes[0].hosted(w.nodes[1], 2)
		for i, line := range map[int]string{0: "entity failed", 1: "entity panicked"} {
			recorder.Reset()
			ctx, root := provider.Tracer("test").Start(t.Context(), "request")
			ctx, cancel := context.WithTimeout(ctx, limit)
			_, err := sharding.Ask[text](ctx, w.nodes[0].region, far[i], say([]string{"fail", "panic"}[i]))
			cancel()
			require.ErrorIs(t, err, sharding.ErrEntityFailed)
			server := span(t, recorder, root.SpanContext().TraceID(), "test/ask", trace.SpanKindServer)
			require.Equal(t, server.SpanContext(), lines.of(line).WithRemote(false), line)
		}
	})
}

// tracedLines is a handler that keeps the span of each line.
type tracedLines struct {
	slog.Handler // Nil: what is not below is not called.

	spans sync.Map // Of the message to a trace.SpanContext.
}

func (l *tracedLines) of(message string) trace.SpanContext {
	span, _ := l.spans.Load(message)
	c, _ := span.(trace.SpanContext)
	return c
}

func (*tracedLines) Enabled(context.Context, slog.Level) bool { return true }

func (l *tracedLines) Handle(ctx context.Context, r slog.Record) error {
	l.spans.Store(r.Message, trace.SpanContextFromContext(ctx))
	return nil
}

func (l *tracedLines) WithAttrs([]slog.Attr) slog.Handler { return l }

// A failure is in the span of the asker and in that of the entity, also when Receive panics
// or ends its goroutine. No span stays open.
func TestSpansOfFailures(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		tracer, recorder := w.traced(sdk.AlwaysSample())
		far := w.nodes[0].hosted(w.nodes[1], 4)
		for i, command := range []string{"fail", "panic", "exit"} {
			ctx, root := tracer.Start(t.Context(), command)
			ctx, cancel := context.WithTimeout(ctx, limit)
			_, err := sharding.Ask[text](ctx, w.nodes[0].region, far[i], say(command))
			cancel()
			require.ErrorIs(t, err, sharding.ErrEntityFailed)
			for _, role := range []trace.SpanKind{trace.SpanKindClient, trace.SpanKindServer} {
				s := span(t, recorder, root.SpanContext().TraceID(), "test/ask", role)
				require.Equal(t, codes.Error, s.Status().Code, "%s, %s", command, role)
				require.Equal(t, "entity-failed", attributeOf(s, "error.type"))
				require.NotEmpty(t, s.Status().Description)
			}
		}
		ctx, root := tracer.Start(t.Context(), "empty id")
		require.ErrorIs(t, w.nodes[0].region.Tell(ctx, "", say("hello")), sharding.ErrInvalid)
		s := span(t, recorder, root.SpanContext().TraceID(), "send test", trace.SpanKindProducer)
		require.Equal(t, "invalid", attributeOf(s, "error.type"))
		pass(time.Second)
		roots := 4
		require.Len(t, recorder.Ended(), len(recorder.Started())-roots, "only those of this test are open")
	})
}
