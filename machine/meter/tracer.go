// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"errors"
	"log/slog"
	"reflect"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Tracing is where the spans of a node go, and how trace contexts travel. The zero value means what is global in the
// program.
type Tracing struct {
	// Provider makes the tracers; it decides which traces are sampled. Nil means the global one of OpenTelemetry, which
	// does nothing until the program sets it, before or after the start of the node.
	Provider trace.TracerProvider

	// Propagator says what travels with a message or a call, and is used as it is. Nil means the global one. While
	// the program has set neither, it is [propagation.TraceContext]: the trace context of W3C, and no baggage.
	Propagator propagation.TextMapPropagator
}

// Tracer begins the spans of one part of a node. While the program has not set the global provider, no span need be
// begun: see [Tracer.Off]. It is safe for concurrent use.
type Tracer struct {
	tracer trace.Tracer
	given  propagation.TextMapPropagator
	// unset is the provider of the program before it sets one; nil when the provider of the tracer may take spans.
	unset trace.TracerProvider
	// unread is the global propagator as it is before the program sets one; nil when there was one already.
	unread propagation.TextMapPropagator
}

// NewTracer returns a tracer for a part. Scope is the import path of the part.
func NewTracer(t Tracing, scope string) *Tracer {
	made := &Tracer{given: t.Propagator}
	if p := otel.GetTextMapPropagator(); len(p.Fields()) == 0 && reflect.TypeOf(p).Comparable() {
		made.unread = p
	}
	p := t.Provider
	if p == nil {
		p = otel.GetTracerProvider()
	}
	made.tracer = p.Tracer(scope, trace.WithInstrumentationVersion(scopeVersion(scope)), trace.WithSchemaURL(SchemaURL))
	if t.Provider != nil {
		return made
	}
	// A provider that does something gives every span an identity. The probe is never
	// ended, and so never exported.
	if _, span := made.tracer.Start(context.Background(), "probe"); !span.SpanContext().IsValid() && reflect.TypeOf(p).Comparable() {
		made.unset = p
	}
	return made
}

// Off reports whether no provider takes spans. A span that does nothing would cost an ask a twentieth of its time.
func (t *Tracer) Off() bool { return t.unset != nil && otel.GetTracerProvider() == t.unset }

// Absent reports whether contexts need not be looked at: no provider takes spans, and
// nobody reads those of other processes, which would be passed on. The look would take a
// twentieth of the time of a tell.
func (t *Tracer) Absent() bool { return t.Off() && t.given == nil && t.untouched() }

// untouched reports whether the program has not set the global propagator.
func (t *Tracer) untouched() bool { return t.unread != nil && otel.GetTextMapPropagator() == t.unread }

// Propagator returns what reads and writes the headers that travel with a message or a call.
func (t *Tracer) Propagator() propagation.TextMapPropagator {
	switch {
	case t.given != nil:
		return t.given
	case t.untouched():
		return propagation.TraceContext{}
	default:
		return otel.GetTextMapPropagator()
	}
}

// Plain reports whether the trace context of W3C travels and nothing else, so that a part may write it by itself.
func (t *Tracer) Plain() bool {
	return t.Propagator() == propagation.TextMapPropagator(propagation.TraceContext{})
}

// Start begins a span.
func (t *Tracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, name, opts...)
}

// The attributes of a line in a log that is of a trace, as OpenTelemetry names them in formats that are not its own.
const (
	TraceIDKey = "trace_id"
	SpanIDKey  = "span_id"
)

// TraceIDs returns the attributes of a line that is logged with ctx; none if ctx belongs to no trace.
func TraceIDs(ctx context.Context) []slog.Attr {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return nil
	}
	return []slog.Attr{slog.String(TraceIDKey, span.TraceID().String()), slog.String(SpanIDKey, span.SpanID().String())}
}

// WithTraceIDs returns a context of the trace and the span that a line of another process names, as [TraceIDs] writes
// them; ctx itself if they name none.
func WithTraceIDs(ctx context.Context, traceID, spanID string) context.Context {
	var c trace.SpanContextConfig
	var errs [2]error
	c.TraceID, errs[0] = trace.TraceIDFromHex(traceID)
	c.SpanID, errs[1] = trace.SpanIDFromHex(spanID)
	if errors.Join(errs[:]...) != nil {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(c))
}
