// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/meter"
)

// WithMeterProvider sets where the metrics quorate.gateway.* go, under the address of the node whose entities clients
// reach; nil means the global provider. A gateway without this option counts [Stats] alone, and one that does not
// listen has no metrics.
func WithMeterProvider(p metric.MeterProvider, node gossip.NodeID) Option {
	return func(s *Server) {
		s.measure = func() (stop func()) {
			m := meter.New(p, "github.com/quorate/quorate/gateway", node)
			return meter.ObserveOrLog(m, table(), func(context.Context) Stats { return s.Stats() }, s.log)
		}
	}
}

// table declares what is read of a gateway when metrics are collected.
func table() []meter.Row[Stats] {
	now := func(name, unit, meaning string, of func(Stats) int) meter.Row[Stats] {
		return meter.UpDown(name, unit, meaning, func(s Stats, observe meter.Observer) { observe(int64(of(s))) })
	}
	return []meter.Row[Stats]{
		now("quorate.gateway.connections", "{connection}", "Connections of clients that are open.",
			func(s Stats) int { return s.Connections }),
		now("quorate.gateway.connections.pending", "{connection}", "Open connections on which no client has been let in yet.",
			func(s Stats) int { return s.Pending }),
		now("quorate.gateway.arriving", "By", "What has come of messages that are on their way, and 4 KiB for each call.",
			func(s Stats) int { return s.Arriving }),
		now("quorate.gateway.calls", "{call}", "Calls of clients that are under way; many requests share one.",
			func(s Stats) int { return s.Calls }),
		now("quorate.gateway.requests.waiting", "{request}", "Requests of clients that have no outcome yet.",
			func(s Stats) int { return s.Requests }),
		meter.Total("quorate.gateway.requests.answered", "{request}", "Requests that have an outcome, of whatever kind.",
			func(s Stats) uint64 { return s.Answered }),
		meter.Total("quorate.gateway.requests.overloaded", "{request}", "Requests that were sent back since the gateway had as many, or as many bytes, as it may.",
			func(s Stats) uint64 { return s.Overloaded }),
		meter.Total("quorate.gateway.calls.refused", "{call}", "Calls of clients that may not ask.",
			func(s Stats) uint64 { return s.Refused }),
		meter.Total("quorate.gateway.calls.crowded", "{call}", "Calls that were ended since too many bytes of messages were on their way.",
			func(s Stats) uint64 { return s.Crowded }),
		meter.Total("quorate.gateway.calls.late", "{call}", "Calls that were ended since their message did not come within gateway.read-timeout.",
			func(s Stats) uint64 { return s.Late }),
		meter.Total("quorate.gateway.connections.refused", "{connection}", "Connections that were closed since there were too many, or since too much came before a client was let in.",
			func(s Stats) uint64 { return s.RefusedConnection }),
		meter.Total("quorate.gateway.connections.unread", "{connection}", "Connections that were closed since their clients did not read what they had asked for.",
			func(s Stats) uint64 { return s.Unread }),
	}
}
