// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/loopbacktest"
	"github.com/quorate/quorate/plugins/internal/policies/downingpolicy"
	"github.com/quorate/quorate/plugins/internal/server"
)

// traced is the connection of a host: each call has a client span if its context belongs to a trace.
type traced struct{ grpc.ClientConnInterface }

func (c traced) Invoke(ctx context.Context, method string, request, answer any, opts ...grpc.CallOption) error {
	ctx, over := client.Traced(ctx, "p", method)
	err := c.ClientConnInterface.Invoke(ctx, method, request, answer, opts...)
	over(err)
	return err
}

// spanOfLines is a handler that notes of which span the last line was.
type spanOfLines struct {
	slog.Handler // Nil: what is not below is not called.

	last trace.SpanContext
}

func (*spanOfLines) Enabled(context.Context, slog.Level) bool { return true }

func (l *spanOfLines) Handle(ctx context.Context, _ slog.Record) error {
	l.last = trace.SpanContextFromContext(ctx)
	return nil
}

// A call that belongs to a trace has a server span below the client span of its host, as soon as the plugin has a
// provider. What the strategy logs with its context is of the trace, with a provider or without. A call that belongs
// to no trace begins none.
func TestACallHasASpanInThePlugin(t *testing.T) {
	lines := new(spanOfLines)
	log := slog.New(lines)
	var fails error
	conn := loopbacktest.Conn(t, func(r grpc.ServiceRegistrar) {
		server.New(server.Strategy{Service: downingpolicy.Contract().Policy().Service, Name: "p", Configure: func([]byte) (any, error) {
			return provider(func(ctx context.Context, v downing.View) (downing.Decision, error) {
				log.InfoContext(ctx, "asked")
				d, err := downing.KeepMajority{}.DecideNow(v)
				return d, errors.Join(err, fails)
			}), nil
		}}, log).Register(r)
	})
	_, err := client.Configure(t.Context(), conn, "p", "", nil)
	require.NoError(t, err)
	d := downingpolicy.New(client.Target{Conn: traced{conn}, Name: "p", Timeout: long})
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	ask := func() (root trace.SpanContext, spans []sdk.ReadOnlySpan, err error) {
		recorder.Reset()
		ctx, span := provider.Tracer("test").Start(t.Context(), "ask downing")
		_, err = d.Decide(ctx, view())
		span.End()
		return span.SpanContext(), recorder.Ended(), err
	}
	root, spans, err := ask()
	require.NoError(t, err)
	require.Len(t, spans, 2, "the plugin has no provider")
	require.Equal(t, root.TraceID(), lines.last.TraceID())
	require.Equal(t, spans[0].SpanContext().SpanID(), lines.last.SpanID())

	before := otel.GetTracerProvider()
	otel.SetTracerProvider(provider)
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	_, spans, err = ask()
	require.NoError(t, err)
	require.Len(t, spans, 3)
	require.Equal(t, trace.SpanKindServer, spans[0].SpanKind())
	require.Equal(t, "quorate.plugin.v1.Downing/Decide", spans[0].Name())
	require.Equal(t, spans[1].SpanContext().SpanID(), spans[0].Parent().SpanID())
	require.Equal(t, spans[0].SpanContext().SpanID(), lines.last.SpanID())
	require.Contains(t, spans[0].Attributes(), attribute.String("rpc.response.status_code", "OK"))
	require.NotEmpty(t, spans[0].InstrumentationScope().Version)

	fails = errors.New("no idea")
	_, spans, err = ask()
	require.Error(t, err)
	require.Equal(t, codes.Error, spans[0].Status().Code)
	require.Contains(t, spans[0].Attributes(), attribute.String("error.type", "UNKNOWN"))

	recorder.Reset()
	fails = nil
	_, err = d.Decide(t.Context(), view())
	require.NoError(t, err)
	require.Empty(t, recorder.Started())
	require.False(t, lines.last.IsValid())
}

// A call that belongs to no trace costs nothing for it.
func TestWithoutATraceNothingIsAllocated(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, over := client.Traced(ctx, "p", "/quorate.plugin.v1.Downing/Decide")
		over(nil)
	}))
}
