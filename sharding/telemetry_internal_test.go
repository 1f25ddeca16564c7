// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/machine/meter/metertest"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// The parts of telemetry that no cluster shows: first the counters of faults, and the word
// that an error has in a metric and in a span; then the trace context in an envelope, by its
// laws, in bytes and against hostile input; last what tracing costs when it is not used.

// Metrics count also faults that a cluster in good health never has.
func TestMetricsOfWhatShouldNotHappen(t *testing.T) {
	lone(t, func(t *testing.T, s *System, _ *Region[*wrapperspb.Int64Value], _ *bytes.Buffer) {
		reader := metertest.New()
		m := newMetrics(s, reader.Provider())
		m.start()
		defer m.stop()
		names := []string{"violations", "messages.malformed", "messages.misdirected", "replies.unsent", "messages.failed", "messages.dropped"}
		for _, name := range names {
			require.Zero(t, reader.Value(t, "quorate.sharding."+name), name)
			require.NotEmpty(t, reader.Points(t, "quorate.sharding."+name), name)
		}
		s.published(control.Violation{Kind: "double"})
		s.runtime.Received(s.self, []byte{0xff})
		s.runtime.Received(s.self, wire.AppendAck(nil, protocol.Ack{Kind: "unknown", Seq: 1}))
		nobody := s.self
		nobody.UID = 0 // There is no lane to a node id without an incarnation.
		s.runtime.Received(nobody, wire.AppendFlow(nil, protocol.Flow{Kind: "double", Entity: "a", State: protocol.FlowAsk}))
		s.runtime.Received(s.self, wire.AppendReply(nil, &protocol.Reply{Kind: "double", Code: protocol.CodeExpired}))
		s.runtime.Ports.Notes.Dropped(cell.DropHops)
		for _, name := range names {
			require.InDelta(t, 1, reader.Value(t, "quorate.sharding."+name), 0, name)
		}
		require.InDelta(t, 1, reader.Value(t, "quorate.sharding.messages.dropped", attribute.String("error.type", "hops")), 0)
	})
}

// Each error code has a word of its own, which metrics and spans carry. A code of a later
// version is an unknown outcome.
func TestWordsForErrors(t *testing.T) {
	seen := map[string]bool{}
	for code := protocol.CodeUnreachable; int(code) < protocol.Codes; code++ {
		word := wordOf(code)
		require.False(t, seen[word], word)
		seen[word] = true
		require.Equal(t, word, wordOfError(&MessageError{"k", "e", "", errorOf(code)}), "%v", code)
		require.EqualError(t, errorOf(code), code.String())
		fault, text := verdictOf(&protocol.Reply{Code: code, Detail: "d"}, nil)
		require.Equal(t, [2]string{word, "d"}, [2]string{fault, text})
	}
	require.NoError(t, errorOf(protocol.CodeOK))
	require.EqualError(t, errorOf(200), protocol.Code(200).String(), "of a later version")
	require.ErrorIs(t, errorOf(200), ErrUnknownOutcome)
	for want, err := range map[string]error{
		"settings":      errors.Join(ErrNotDelivered, &SettingsError{}),
		"invalid":       ErrInvalid,
		"unreachable":   errors.Join(ErrNotDelivered, &UnreachableError{}, context.Canceled),
		"not-delivered": errors.Join(ErrNotDelivered, ErrClosed),
	} {
		require.Equal(t, want, wordOfError(err))
	}
	fault, text := verdictOf(&protocol.Reply{}, nil)
	require.Empty(t, fault+text)
}

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
		b := traceparent(c)
		if !c.IsValid() {
			require.Nil(t, b)
			return
		}
		require.True(t, c.Equal(parseTraceparent(b)), "%q", b)
		require.Equal(t, c.IsSampled(), isSampled(b))
	})
	id, _ := trace.TraceIDFromHex("0af7651916cd43dd8448eb211c80319c")
	span, _ := trace.SpanIDFromHex("b7ad6b7169203331")
	state, err := trace.ParseTraceState("congo=t61rcWkgMzE")
	require.NoError(t, err)
	c := trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled}
	require.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", string(traceparent(trace.NewSpanContext(c))))
	c.TraceState = state
	require.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\ncongo=t61rcWkgMzE", string(traceparent(trace.NewSpanContext(c))))
}

// A tracestate that is too long is left out of the trace context; the rest is passed on.
func TestALongTracestateIsLeftOut(t *testing.T) {
	state, err := trace.ParseTraceState("a=" + strings.Repeat("x", 250) + ",b=" + strings.Repeat("y", 250) + ",c=" + strings.Repeat("z", 20))
	require.NoError(t, err)
	c := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceState: state})
	require.Len(t, traceparent(c), traceparentBytes)
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
			require.Equal(t, c.IsSampled(), isSampled(b))
			require.True(t, c.Equal(parseTraceparent(traceparent(c))))
		}
	})
}

// Looking for a trace allocates nothing when the message belongs to none.
func TestWithoutATraceNothingIsAllocated(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if c := trace.SpanContextFromContext(ctx); c.IsSampled() || traceparent(c) != nil {
			panic("there is no trace")
		}
	}))
}

// Tracing is off while it has the global provider and the program has not set one. With a
// provider of its own it is always on.
func TestTracingIsOffUntilThereIsAProvider(t *testing.T) {
	none := tracingBy(nil)
	require.True(t, none.off())
	given := tracingBy(noop.NewTracerProvider())
	require.False(t, given.off(), "it was asked for")
	other := tracing{unset: noop.NewTracerProvider()}
	require.False(t, other.off(), "the program has set another one since")
}

// Contexts are looked at as soon as there may be spans in them: by a provider, or by a
// propagator that reads those of other processes.
func TestContextsAreLookedAtWhenThereMayBeSpans(t *testing.T) {
	none := tracingBy(nil)
	require.True(t, none.absent())
	given := tracingBy(noop.NewTracerProvider())
	require.False(t, given.absent())
	read := tracing{unset: none.unset, unread: propagation.TraceContext{}}
	require.True(t, read.off())
	require.False(t, read.absent(), "the program has set another propagator since")
	known := tracing{unset: none.unset}
	require.False(t, known.absent(), "there was a propagator at the start")
}
