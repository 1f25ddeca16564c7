// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"pgregory.net/rapid"
)

// First the trace context in an envelope, by its
// laws, in bytes and against hostile input; last what tracing costs when it is not used.

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

// Tracing is off while it has the global provider and the program has not set one. With a
// provider of its own it is always on.
func TestTracingIsOffUntilThereIsAProvider(t *testing.T) {
	none := NewTracing(nil)
	require.True(t, none.Off())
	given := NewTracing(noop.NewTracerProvider())
	require.False(t, given.Off(), "it was asked for")
	other := Tracing{unset: noop.NewTracerProvider()}
	require.False(t, other.Off(), "the program has set another one since")
}

// Contexts are looked at as soon as there may be spans in them: by a provider, or by a
// propagator that reads those of other processes.
func TestContextsAreLookedAtWhenThereMayBeSpans(t *testing.T) {
	none := NewTracing(nil)
	require.True(t, none.Absent())
	given := NewTracing(noop.NewTracerProvider())
	require.False(t, given.Absent())
	read := Tracing{unset: none.unset, unread: propagation.TraceContext{}}
	require.True(t, read.Off())
	require.False(t, read.Absent(), "the program has set another propagator since")
	known := Tracing{unset: none.unset}
	require.False(t, known.Absent(), "there was a propagator at the start")
}
