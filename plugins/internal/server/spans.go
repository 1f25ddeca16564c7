// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/plugins/internal/wire"
)

// newTracer returns what begins the spans of calls, by the global provider of the plugin's process.
func newTracer() *meter.Tracer {
	return meter.NewTracer(meter.Tracing{}, "github.com/quorate/quorate/plugins/sdk")
}

// incoming are the metadata of a call, as a propagator reads them.
type incoming struct{ context.Context } //nolint:containedctx // For the time of one call of the propagator.

// Get returns a header, empty if the call has none of that name.
func (in incoming) Get(name string) string {
	return strings.Join(metadata.ValueFromIncomingContext(in, name), ",")
}

// Set is not called: nothing is written.
func (incoming) Set(string, string) {}

// Keys is not called by the propagator of W3C.
func (incoming) Keys() []string { return nil }

// traced returns the context of a call with the trace that its host belongs to, so that what the strategy logs with
// it has the ids, and begins the server span if the plugin has a provider for it. A call that belongs to no trace
// begins none. The caller calls over with the status of the call.
func (s *Server) traced(ctx context.Context) (_ context.Context, over func(error)) {
	ctx = propagation.TraceContext{}.Extract(ctx, incoming{ctx})
	if !trace.SpanContextFromContext(ctx).IsValid() || s.tracer.Off() {
		return ctx, func(error) {}
	}
	method, _ := grpc.Method(ctx)
	method = strings.TrimPrefix(method, "/")
	ctx, span := s.tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(semconv.RPCSystemNameGRPC, semconv.RPCMethod(method), semconv.ServerAddress(s.strategy.Name)))
	return ctx, func(err error) { wire.EndSpan(span, err) }
}
