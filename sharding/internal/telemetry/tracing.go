// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"reflect"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The spans of messages: a [Kind] begins one where a message is sent, and one around the Receive of the entity, if
// the message has a trace context that is sampled. Last, the form of a trace context in an envelope.

// The attributes of spans. Unlike the attributes of metrics they may name the entity.
const (
	attrEntity = attribute.Key("quorate.entity")
	attrShard  = attribute.Key("quorate.shard")
	attrNode   = attribute.Key("quorate.node")
)

// Kind begins the spans of the messages of one kind. Each role has a template.
//
//	Ask   "ask K"   client ─────────────────────────┐ until the reply
//	        └─> "ask K"   server, around Receive ───┘
//	Tell  "send K"  producer, until it is accepted
//	        └─> "process K"   consumer, around Receive
//
// An ask has a span, the first of a trace if the asker has none. A tell joins the
// trace of its sender and begins none: there are millions of them a second, and
// each would be a decision of a sampler. A trace that is not sampled is passed on
// without spans, so that the decision is kept on the way.
type Kind struct {
	Client, Server, Producer, Consumer Template

	tracing *Tracing
	self    string // The node.
}

// Template holds what the spans of one role have in common. The attributes are set
// once a span is known to be recorded: most spans are not, and must cost little.
type Template struct {
	name  string
	role  []trace.SpanStartOption
	attrs []attribute.KeyValue
}

// NewKind returns what begins the spans of a kind on a node.
func (t *Tracing) NewKind(kind, self string) *Kind {
	of := func(operation string, role trace.SpanKind, attrs []attribute.KeyValue) Template {
		return Template{operation + " " + kind, []trace.SpanStartOption{trace.WithSpanKind(role)}, append(attrs, attrKind.String(kind))}
	}
	call := []attribute.KeyValue{attribute.String("rpc.system", "quorate"), attribute.String("rpc.service", kind), attribute.String("rpc.method", "ask")}
	message := func(operation string) []attribute.KeyValue {
		return []attribute.KeyValue{
			attribute.String("messaging.system", "quorate"), attribute.String("messaging.destination.name", kind),
			attribute.String("messaging.operation.name", operation), attribute.String("messaging.operation.type", operation),
		}
	}
	return &Kind{
		tracing: t, self: self,
		Client: of("ask", trace.SpanKindClient, call), Server: of("ask", trace.SpanKindServer, call),
		Producer: of("send", trace.SpanKindProducer, message("send")), Consumer: of("process", trace.SpanKindConsumer, message("process")),
	}
}

// Tracing makes spans. While the program has not set the global provider, no span is
// begun: even a span that does nothing would cost each ask a twentieth of its time.
type Tracing struct {
	tracer trace.Tracer
	unset  trace.TracerProvider          // That of the program before it sets one; nil when the provider of the tracer may take spans.
	unread propagation.TextMapPropagator // The global propagator as it is before the program sets one; nil when there was one already.
}

// NewTracing returns the tracing of a provider, of the global provider if p is nil.
func NewTracing(p trace.TracerProvider) *Tracing {
	const scope = "github.com/quorate/quorate/sharding"
	if p != nil {
		return &Tracing{tracer: p.Tracer(scope)}
	}
	p = otel.GetTracerProvider()
	t := &Tracing{tracer: p.Tracer(scope)}
	// A provider that does something gives every span an identity. The probe is never
	// ended, and so never exported.
	if _, span := t.tracer.Start(context.Background(), "probe"); !span.SpanContext().IsValid() && reflect.TypeOf(p).Comparable() {
		t.unset = p
	}
	if p := otel.GetTextMapPropagator(); len(p.Fields()) == 0 && reflect.TypeOf(p).Comparable() {
		t.unread = p
	}
	return t
}

// Off reports whether no provider takes spans.
func (t *Tracing) Off() bool { return t.unset != nil && otel.GetTracerProvider() == t.unset }

// Absent reports whether contexts need not be looked at: no provider takes spans, and
// nobody reads those of other processes, which would be passed on. The look would take a
// twentieth of the time of a tell.
func (t *Tracing) Absent() bool {
	return t.Off() && t.unread != nil && otel.GetTextMapPropagator() == t.unread
}

// Begin begins a span about an entity of a shard, in one of the roles of the kind.
func (k *Kind) Begin(ctx context.Context, id string, shard uint32, role *Template) (context.Context, trace.Span) {
	ctx, span := k.tracing.tracer.Start(ctx, role.name, role.role...)
	if span.IsRecording() {
		span.SetAttributes(role.attrs...)
		span.SetAttributes(attrEntity.String(protocol.Clip(id)), attrShard.Int(int(shard)), attrNode.String(k.self))
	}
	return ctx, span
}

// Finish ends a span, with the fault and its text if the fault is not empty.
func Finish(span trace.Span, fault, text string) {
	if fault != "" && span.IsRecording() {
		span.SetAttributes(meter.Fault.String(fault))
		span.SetStatus(codes.Error, text)
	}
	span.End()
}

// Remote returns a context with the span of another node, as an envelope says. What
// means nothing there is left out.
func Remote(ctx context.Context, b []byte) context.Context {
	parent := parseTraceparent(b)
	if !parent.IsValid() {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, parent)
}

// In an envelope a trace context is the value of the header traceparent of W3C Trace
// Context, version 00; a tracestate, if there is one, follows after a line feed.
const (
	traceparentBytes = len("00-00000000000000000000000000000000-0000000000000000-00")
	maxTracestate    = 512 // Bytes. A longer one is left out, as the recommendation allows.
)

// Traceparent returns the trace context for an envelope, nil when there is none.
func Traceparent(c trace.SpanContext) []byte {
	if !c.IsValid() {
		return nil
	}
	state := c.TraceState().String()
	if len(state) > maxTracestate {
		state = ""
	}
	id, span, flags := c.TraceID(), c.SpanID(), [1]byte{byte(c.TraceFlags())}
	b := make([]byte, 0, traceparentBytes+min(len(state), 1)+len(state))
	b = hex.AppendEncode(append(b, "00-"...), id[:])
	b = hex.AppendEncode(append(b, '-'), span[:])
	b = hex.AppendEncode(append(b, '-'), flags[:])
	if state != "" {
		b = append(append(b, '\n'), state...)
	}
	return b
}

// parseTraceparent returns the trace context of an envelope, not valid when the bytes are
// malformed.
func parseTraceparent(b []byte) trace.SpanContext {
	var c trace.SpanContextConfig
	parent, state, _ := bytes.Cut(b, []byte{'\n'})
	var flags [1]byte
	if len(parent) != traceparentBytes || string(parent[:3]) != "00-" || parent[35] != '-' || parent[52] != '-' ||
		!unhex(c.TraceID[:], parent[3:35]) || !unhex(c.SpanID[:], parent[36:52]) || !unhex(flags[:], parent[53:]) {
		return trace.SpanContext{}
	}
	c.TraceFlags = trace.TraceFlags(flags[0])
	if len(state) > 0 && len(state) <= maxTracestate {
		c.TraceState, _ = trace.ParseTraceState(string(state)) // A malformed tracestate is left out.
	}
	return trace.NewSpanContext(c)
}

// IsSampled reports whether the trace context of an envelope is sampled. The flag is
// in the last digit, and for most traces nothing else has to be read.
func IsSampled(b []byte) bool {
	return len(b) >= traceparentBytes && bytes.IndexByte([]byte("13579bdfBDF"), b[traceparentBytes-1]) >= 0
}

// unhex decodes the hexadecimal digits of src into dst. It reports false when one is
// malformed.
func unhex(dst, src []byte) bool {
	_, err := hex.Decode(dst, src)
	return err == nil
}
