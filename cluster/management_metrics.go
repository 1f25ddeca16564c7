// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/management"
)

// measureStreams measures who watches the events of a node, until stop. An instrument that cannot be made is
// logged, and missing.
func measureStreams(p metric.MeterProvider, self gossip.NodeID, of *management.Server, log *slog.Logger) (stop func()) {
	return meter.ObserveOrLog(meter.New(p, "github.com/quorate/quorate/management", self), []meter.Row[management.Streams]{
		meter.Gauge("quorate.management.streams", "{stream}", "Streams of events that are being answered.",
			func(s management.Streams, observe meter.Observer) { observe(int64(s.Open)) }),
		meter.Total("quorate.management.streams.slow", "{stream}", "Streams of events that were ended because their clients did not read.",
			func(s management.Streams) uint64 { return s.Slow }),
	}, func(context.Context) management.Streams { return of.Streams() }, log)
}
