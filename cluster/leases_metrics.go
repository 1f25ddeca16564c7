// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/downing/lease/majority"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/meter"
)

// leaseMetrics shows what the strategies do that decide by a lease.
type leaseMetrics struct {
	stop func()

	mu  sync.Mutex // guards all
	all []*majority.Strategy
}

// measureLeases begins to measure, until stop. An instrument that cannot be made is logged, and
// missing.
func measureLeases(p metric.MeterProvider, address string, log *slog.Logger) *leaseMetrics {
	var node gossip.NodeID
	node.Address, _ = gossip.ParseAddress(address) // The configuration was checked.
	l := &leaseMetrics{}
	l.stop = meter.ObserveOrLog(meter.New(p, "github.com/quorate/quorate/downing/lease", node), []meter.Row[[]majority.State]{
		meter.Gauge("quorate.lease.held", "{lease}", "1 while this node holds the lease of the downing strategy, else 0.", showHeld),
		meter.FloatGauge("quorate.lease.waiting", "s", "For how long a downing decision of this node has waited for the lease; 0: none waits.", showWaiting),
	}, func(context.Context) []majority.State { return l.states() }, log)
	return l
}

func showHeld(all []majority.State, observe meter.Observer) {
	held := int64(0)
	for _, s := range all {
		if s.Token != 0 {
			held = 1
		}
	}
	observe(held)
}

func showWaiting(all []majority.State, observe func(float64, ...attribute.KeyValue)) {
	longest := 0.0
	for _, s := range all {
		if !s.Waiting.IsZero() {
			longest = max(longest, time.Since(s.Waiting).Seconds())
		}
	}
	observe(longest)
}

func (l *leaseMetrics) add(s *majority.Strategy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
}

func (l *leaseMetrics) remove(s *majority.Strategy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(other *majority.Strategy) bool { return other == s })
}

// states returns what the strategies do.
func (l *leaseMetrics) states() []majority.State {
	l.mu.Lock()
	all := slices.Clone(l.all)
	l.mu.Unlock()
	states := make([]majority.State, len(all))
	for i, s := range all {
		states[i] = s.State()
	}
	return states
}

// waitsForLease says that a downing decision of this node waits for a lease.
func (n *Node) waitsForLease() []string {
	var why []string
	for _, s := range n.plugins.leases.states() {
		if !s.Waiting.IsZero() {
			why = append(why, "a downing decision is "+s.String())
		}
	}
	return why
}
