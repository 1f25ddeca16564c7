// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// The attributes of the spans of strategies, beside those of metrics.
const (
	attrNode    = attribute.Key("quorate.node")
	attrName    = attribute.Key("quorate.strategy") // The name of a downing strategy.
	attrTimeout = attribute.Key("quorate.timeout")  // Seconds: how long an answer may take.
	attrSubject = attribute.Key("quorate.decision.subject")
	attrReason  = attribute.Key("quorate.decision.reason")
)

// spans begins a span for each question to a strategy that is called, and one for each decision about downing that
// follows from it: also one that other rules took since there was no answer.
//
//	"ask downing" ──> the client span of a plugin ──> its server span, in its process
//	  └─> "decide downing", for each line of the decision log until the next question
type spans struct {
	tracer *meter.Tracer
	node   string
	loaded *downingTable                     // Has the names of strategies.
	asked  atomic.Pointer[trace.SpanContext] // Of the last question about downing; nil before the first.
}

func newSpans(p trace.TracerProvider, node string, loaded *downingTable) *spans {
	return &spans{tracer: meter.NewTracer(meter.Tracing{Provider: p}, "github.com/quorate/quorate/membership"), node: node, loaded: loaded}
}

// call has f carry out a call within a span.
func (s *spans) call(ctx context.Context, c machine.Call, f func(context.Context) (any, error)) (any, error) {
	if s.tracer.Off() || c.Port == protocol.CallRemember { // A disk is no strategy.
		return f(ctx)
	}
	ctx, span := s.tracer.Start(ctx, "ask "+c.Port)
	if c.Port == protocol.CallDowning {
		asked := span.SpanContext()
		s.asked.Store(&asked)
	}
	if span.IsRecording() {
		span.SetAttributes(attrStrategy.String(c.Port), attrNode.String(s.node), attrTimeout.Float64(c.Limit.Seconds()))
		if r, ok := c.Request.(protocol.DowningRequest); ok {
			span.SetAttributes(attrName.String(s.loaded.get(r.Load).Name))
		}
	}
	// It ends at once. A call that ignores its deadline may never return: its span ends all the same.
	stop := context.AfterFunc(ctx, func() {
		span.AddEvent("deadline", trace.WithAttributes(attrTimeout.Float64(c.Limit.Seconds())))
		finish(span, fmt.Errorf("no answer within %v: %w", c.Limit, ctx.Err()))
	})
	result, err := f(ctx)
	if stop() {
		if d, ok := result.(downing.Decision); ok && err == nil {
			span.AddEvent("decision", trace.WithAttributes(attrVerdict.String(d.Verdict.String()), attrReason.String(d.Reason)))
		}
		finish(span, err)
	}
	return result, err
}

// finish ends a span, with the error if there is one.
func finish(span trace.Span, err error) {
	if err != nil {
		span.SetAttributes(meter.Fault.String(faultOf(err)))
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// decided has a decision about downing in the trace of the question that it may follow from.
func (s *spans) decided(component string, d machine.Decide) {
	asked := s.asked.Load()
	if asked == nil || component != ComponentName || d.Topic != protocol.CallDowning {
		return
	}
	_, span := s.tracer.Start(trace.ContextWithSpanContext(context.Background(), *asked), "decide "+d.Topic)
	span.SetAttributes(attrNode.String(s.node), attrSubject.String(d.Subject), attrVerdict.String(d.Verdict), attrReason.String(d.Reason))
	if d.Verdict == protocol.VerdictUnanswered {
		span.SetStatus(codes.Error, d.Reason)
	}
	span.End()
}
