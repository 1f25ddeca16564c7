// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/quorate/quorate/machine/meter/metertest"
	"github.com/quorate/quorate/plugins"
)

// Each call, start, absence and event of a plugin is measured.
func TestMetricsOfPlugins(t *testing.T) {
	reader := metertest.New()
	m := measurePlugins(reader.Provider(), "127.0.0.1:7946", slog.New(slog.DiscardHandler))
	for _, e := range []plugins.Event{
		{Type: plugins.Started, Took: 100 * time.Millisecond},
		{Type: plugins.Called, Call: "decide", Latency: time.Millisecond},
		{Type: plugins.Called, Call: "decide", Latency: time.Second, Err: fmt.Errorf("asking: %w", context.DeadlineExceeded)},
		{Type: plugins.Exited},
		{Type: plugins.Called, Call: "allocate", Err: plugins.ErrUnavailable},
		{Type: plugins.Restarted, Took: 200 * time.Millisecond, Away: 2 * time.Second},
		{Type: plugins.Exited},
	} {
		e.Plugin = "witness"
		m.observe(e)
	}
	of := func(key, value string) attribute.KeyValue { return attribute.String(key, value) }
	name := of("quorate.plugin", "witness")
	require.InDelta(t, 3, reader.Value(t, "quorate.plugin.call.duration", name), 0)
	require.InDelta(t, 1, reader.Value(t, "quorate.plugin.call.duration", of("quorate.plugin.call", "decide"), of("error.type", "timeout")), 0)
	require.InDelta(t, 1, reader.Value(t, "quorate.plugin.call.duration", of("error.type", "unavailable")), 0)
	require.InDelta(t, 2, reader.Value(t, "quorate.plugin.start.duration", name), 0)
	require.InDelta(t, 1, reader.Value(t, "quorate.plugin.away.duration", name), 0)
	require.InDelta(t, 2, reader.Points(t, "quorate.plugin.away.duration")[0].Sum, 0)
	require.InDelta(t, 2, reader.Value(t, "quorate.plugin.events", of("quorate.plugin.event", "exited")), 0)
	require.InDelta(t, 4, reader.Value(t, "quorate.plugin.events", name), 0, "calls are no events")
	for want, err := range map[string]error{"bad-answer": plugins.ErrAnswer, "no-answer": plugins.ErrStrategy, "failed": errors.New("x")} {
		require.Equal(t, want, pluginFault(err))
	}
	m.stop()
	require.Empty(t, reader.Points(t, "quorate.plugin.events"))
}
