// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/plugins"
)

// The attributes of the metrics of plugins. There are as many values as plugins in the
// configuration.
const (
	attrPlugin = attribute.Key("quorate.plugin")
	attrCall   = attribute.Key("quorate.plugin.call")  // "decide", "allocate" or "rebalance".
	attrEvent  = attribute.Key("quorate.plugin.event") // What happened to the plugin: a [plugins.EventType].
)

// pluginMetrics counts and measures the events of the plugins of a node.
type pluginMetrics struct {
	calls, starts, away metric.Float64Histogram
	stop                func()

	mu     sync.Mutex // Guards counts.
	counts map[pluginEvent]int64
}

// pluginEvent is an event of a plugin, as it is counted.
type pluginEvent struct {
	plugin string
	typ    plugins.EventType
}

// measurePlugins begins to measure, until stop. An instrument that cannot be made is
// logged, and missing.
func measurePlugins(p metric.MeterProvider, address string, log *slog.Logger) *pluginMetrics {
	var node gossip.NodeID
	node.Address, _ = gossip.ParseAddress(address) // The configuration was checked.
	m := meter.New(p, "github.com/quorate/quorate/plugins", node)
	i := &pluginMetrics{
		calls: m.Seconds("quorate.plugin.call.duration", "Time that a call of a plugin took.",
			.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5),
		starts: m.Seconds("quorate.plugin.start.duration", "Time from the launch of a plugin to its readiness.",
			.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10),
		away: m.Seconds("quorate.plugin.away.duration", "Time for which there was no process of a plugin to ask, when there is one again.",
			.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300),
		counts: map[pluginEvent]int64{},
	}
	i.stop = meter.ObserveOrLog(m, []meter.Row[*pluginMetrics]{
		meter.Counter("quorate.plugin.events", "{event}", "What happened to a plugin: it was started, restarted, swapped, exited, ...", (*pluginMetrics).observeCounts),
	}, func(context.Context) *pluginMetrics { return i }, log)
	return i
}

// observe counts an event. It does not wait.
func (m *pluginMetrics) observe(e plugins.Event) {
	plugin := attrPlugin.String(e.Plugin)
	record := func(h metric.Float64Histogram, seconds float64, more ...attribute.KeyValue) {
		// With the span of the question, for an exemplar.
		h.Record(trace.ContextWithSpanContext(context.Background(), e.Span), seconds, metric.WithAttributes(append(more, plugin)...))
	}
	if e.Type == plugins.Called {
		attrs := []attribute.KeyValue{attrCall.String(e.Call)}
		if e.Err != nil {
			attrs = append(attrs, meter.Fault.String(pluginFault(e.Err)))
		}
		record(m.calls, e.Latency.Seconds(), attrs...)
		return
	}
	if e.Took > 0 {
		record(m.starts, e.Took.Seconds())
	}
	if e.Away > 0 {
		record(m.away, e.Away.Seconds())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[pluginEvent{e.Plugin, e.Type}]++
}

// observeCounts reports the counts of events.
func (m *pluginMetrics) observeCounts(observe meter.Observer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for e, n := range m.counts {
		observe(n, attrPlugin.String(e.plugin), attrEvent.String(string(e.typ)))
	}
}

// pluginFault names the fault of a failed call in one word.
func pluginFault(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, plugins.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, plugins.ErrAnswer):
		return "bad-answer"
	case errors.Is(err, plugins.ErrStrategy):
		return "no-answer"
	default:
		return "failed"
	}
}
