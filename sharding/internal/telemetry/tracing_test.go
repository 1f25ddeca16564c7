// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/machine/meter"
)

// First the trace context in an envelope, by its laws, in bytes and against hostile input; then other headers; last
// what tracing costs when it is not used.

// contexts draws a trace context, which may be invalid.
func contexts(t *rapid.T) trace.SpanContext {
	c := trace.SpanContextConfig{TraceFlags: trace.TraceFlags(rapid.Byte().Draw(t, "flags"))}
	copy(c.TraceID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "trace"))
	copy(c.SpanID[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "span"))
	state, err := trace.ParseTraceState(rapid.SampledFrom([]string{"", "a=1", "vendor=x,other@v=y"}).Draw(t, "state"))
	require.NoError(t, err)
	c.TraceState = state
	return trace.NewSpanContext(c)
}

// A trace context survives an envelope, and its bytes are those of the examples in the W3C
// recommendation on trace context.
func TestATraceContextSurvivesAnEnvelope(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := contexts(t)
		b := Traceparent(c)
		if !c.IsValid() {
			require.Nil(t, b)
			return
		}
		require.True(t, c.Equal(parseTraceparent(b)), "%q", b)
		require.Equal(t, c.IsSampled(), IsSampled(b))
	})
	id, _ := trace.TraceIDFromHex("0af7651916cd43dd8448eb211c80319c")
	span, _ := trace.SpanIDFromHex("b7ad6b7169203331")
	state, err := trace.ParseTraceState("congo=t61rcWkgMzE")
	require.NoError(t, err)
	c := trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled}
	require.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", string(Traceparent(trace.NewSpanContext(c))))
	c.TraceState = state
	require.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\ncongo=t61rcWkgMzE", string(Traceparent(trace.NewSpanContext(c))))
}

// A tracestate that is too long is left out of the trace context; the rest is passed on.
func TestALongTracestateIsLeftOut(t *testing.T) {
	state, err := trace.ParseTraceState("a=" + strings.Repeat("x", 250) + ",b=" + strings.Repeat("y", 250) + ",c=" + strings.Repeat("z", 20))
	require.NoError(t, err)
	c := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceState: state})
	require.Len(t, Traceparent(c), traceparentBytes)
}

// FuzzTraceparent parses trace contexts as a hostile node may send them: a context that is
// accepted survives being written and parsed again.
func FuzzTraceparent(f *testing.F) {
	for _, seed := range []string{
		"", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\na=b",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n\n", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-", "----",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := parseTraceparent(b)
		if c.IsValid() {
			require.Equal(t, c.IsSampled(), IsSampled(b))
			require.True(t, c.Equal(parseTraceparent(Traceparent(c))))
		}
	})
}

// tracingWith returns the tracing of a node whose program gives a propagator.
func tracingWith(p propagation.TextMapPropagator) *Tracing {
	return NewTracing(meter.Tracing{Propagator: p})
}

// What the propagator of the program writes survives an envelope, whatever it is; a node that knows of the trace
// context alone finds that.
func TestThePropagatorOfTheProgramIsUsedAsItIs(t *testing.T) {
	both := tracingWith(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	alone, plain := tracingWith(propagation.Baggage{}), tracingWith(propagation.TraceContext{})
	rapid.Check(t, func(t *rapid.T) {
		member, err := baggage.NewMemberRaw("tenant", rapid.String().Draw(t, "tenant"))
		require.NoError(t, err)
		bag, err := baggage.New(member)
		require.NoError(t, err)
		c := contexts(t)
		ctx := baggage.ContextWithBaggage(trace.ContextWithSpanContext(t.Context(), c), bag)

		b := both.Inject(ctx)
		got := both.Extract(t.Context(), b)
		require.Equal(t, member.Value(), baggage.FromContext(got).Member("tenant").Value())
		require.Equal(t, c.IsValid(), trace.SpanContextFromContext(got).IsValid())
		if c.IsValid() {
			require.Equal(t, c.TraceID(), trace.SpanContextFromContext(got).TraceID())
			require.True(t, trace.SpanContextFromContext(plain.Extract(t.Context(), b)).Equal(trace.SpanContextFromContext(got)))
		}
		_, sampled := both.Sampled(b)
		require.Equal(t, c.IsValid() && c.IsSampled(), sampled)

		b = alone.Inject(ctx)
		require.False(t, trace.SpanContextFromContext(both.Extract(t.Context(), b)).IsValid(), "the program wants no trace context to travel")
		require.Equal(t, member.Value(), baggage.FromContext(alone.Carried(t.Context(), b)).Member("tenant").Value())
		require.Equal(t, string(Traceparent(c)), string(plain.Inject(ctx)))
		require.Empty(t, baggage.FromContext(plain.Carried(t.Context(), b)).Members())
	})
}

// Headers that are too long are left out, and those of nodes are not taken from clients.
func TestHeadersAreBounded(t *testing.T) {
	require.Nil(t, lines(propagation.MapCarrier{}))
	require.Nil(t, lines(propagation.MapCarrier{"a": "b\nc"}))
	many := propagation.MapCarrier{"traceparent": strings.Repeat("1", 55), "a": strings.Repeat("x", 8192), "b": strings.Repeat("y", 1000), "c": "z"}
	b := lines(many)
	require.LessOrEqual(t, len(b), maxHeaders)
	delete(many, "b")
	require.Equal(t, many, headersOf(b))
	require.Equal(t, "\n\nb:c", string(lines(propagation.MapCarrier{"b": "c"})))
	require.Equal(t, "p\ns", string(OfClient("p\ns\nbaggage:tenant=1")))
	require.Equal(t, "p", string(OfClient("p")))
}

// Looking for a trace allocates nothing when the message belongs to none.
func TestWithoutATraceNothingIsAllocated(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if c := trace.SpanContextFromContext(ctx); c.IsSampled() || Traceparent(c) != nil {
			panic("there is no trace")
		}
	}))
}
