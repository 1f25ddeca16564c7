// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/log/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/cluster"
)

// collector stands for the LoggerProvider of the SDK with an exporter: it prints of which trace a line is.
type collector struct{ noop.LoggerProvider }

// collected is a logger of a collector.
type collected struct{ noop.Logger }

func (collector) Logger(string, ...log.LoggerOption) log.Logger { return collected{} }

func (collected) Enabled(context.Context, log.EnabledParameters) bool { return true }

func (collected) Emit(ctx context.Context, line log.Record) {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		fmt.Println(line.Body().AsString(), span.TraceID())
	}
}

// The lines of a node go to a collector by the bridge of OpenTelemetry for slog, and those that are logged within a
// trace are of that trace there.
func Example_lines() {
	lines := otelslog.NewLogger("devices", otelslog.WithLoggerProvider(collector{}))
	_ = cluster.WithLogger(lines) // An option of cluster.Start.
	of := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{15: 7}, SpanID: trace.SpanID{7: 1}})
	lines.InfoContext(trace.ContextWithSpanContext(context.Background(), of), "a reading was refused")
	// Output: a reading was refused 00000000000000000000000000000007
}
