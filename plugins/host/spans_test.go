// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/plugins"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// A question within a trace has a client span, whose trace context goes to the process, and whose trace the event of
// the call names. A question that belongs to no trace begins none.
func TestAQuestionHasASpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := tracetest.NewSpanRecorder()
		tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder)).Tracer("test")
		l := &fakeLauncher{}
		p, events, err := openFake(t, l)
		require.NoError(t, err)
		f := l.first()
		var sent metadata.MD
		var fails error
		f.mu.Lock()
		f.call = func(ctx context.Context) (*pluginv1.RebalanceResponse, error) {
			sent, _ = metadata.FromOutgoingContext(ctx)
			return &pluginv1.RebalanceResponse{Summary: "I"}, fails
		}
		f.mu.Unlock()
		s, err := p.Allocation()
		require.NoError(t, err)

		_, err = s.Rebalance(t.Context(), allocation.RebalanceRequest{})
		require.NoError(t, err)
		require.Empty(t, sent)
		require.Empty(t, recorder.Started())

		ctx, root := tracer.Start(t.Context(), "ask allocation")
		_, err = s.Rebalance(ctx, allocation.RebalanceRequest{})
		require.NoError(t, err)
		fails = status.Error(codes.DeadlineExceeded, "late")
		_, err = s.Rebalance(ctx, allocation.RebalanceRequest{})
		require.Error(t, err)
		ended := recorder.Ended()
		require.Len(t, ended, 2)
		for _, s := range ended {
			require.Equal(t, "quorate.plugin.v1.Allocation/Rebalance", s.Name())
			require.Equal(t, trace.SpanKindClient, s.SpanKind())
			require.Equal(t, root.SpanContext().SpanID(), s.Parent().SpanID())
			require.Contains(t, s.Attributes(), attribute.String("rpc.system.name", "grpc"))
			require.Contains(t, s.Attributes(), attribute.String("rpc.method", s.Name()))
			require.Contains(t, s.Attributes(), attribute.String("server.address", p.Name()))
		}
		require.Contains(t, ended[0].Attributes(), attribute.String("rpc.response.status_code", "OK"))
		require.Contains(t, ended[1].Attributes(), attribute.String("error.type", "DEADLINE_EXCEEDED"))
		require.Equal(t, otelcodes.Error, ended[1].Status().Code)
		last := ended[1].SpanContext()
		require.Equal(t, []string{"00-" + last.TraceID().String() + "-" + last.SpanID().String() + "-01"}, sent.Get("traceparent"))
		require.NoError(t, p.Close(t.Context()))
		called, _ := events.Last(plugins.Called)
		require.Equal(t, root.SpanContext().SpanID(), called.Span.SpanID())
	})
}
