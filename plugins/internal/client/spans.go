// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/plugins/internal/wire"
)

// Traced begins the client span of a call of a plugin, if the span of ctx is recorded: by the provider of that, so that
// who asks says where spans go. The trace context of ctx travels with the call as W3C Trace Context says, in the
// metadata of gRPC. Without a trace in ctx nothing is done. The caller calls over when the call has ended.
func Traced(ctx context.Context, plugin, method string) (_ context.Context, over func(error)) {
	parent := trace.SpanFromContext(ctx)
	if !parent.SpanContext().IsValid() {
		return ctx, func(error) {}
	}
	over = func(error) {}
	if parent.IsRecording() {
		var span trace.Span
		method = strings.TrimPrefix(method, "/")
		tracer := meter.NewTracer(meter.Tracing{Provider: parent.TracerProvider()}, "github.com/quorate/quorate/plugins")
		ctx, span = tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			semconv.RPCSystemNameGRPC, semconv.RPCMethod(method), semconv.ServerAddress(plugin), attribute.String("quorate.plugin", plugin)))
		over = func(err error) { wire.EndSpan(span, err) }
	}
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, headers)
	var pairs []string
	for name, value := range headers {
		pairs = append(pairs, name, value)
	}
	return metadata.AppendToOutgoingContext(ctx, pairs...), over
}
