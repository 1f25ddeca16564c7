// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine/meter"
)

// The metrics: newMetrics makes the instrument of durations, start has those of the table
// observed, for which collect reads all counters. Last, the words that name errors in
// attributes.

// The attributes of the metrics. They take few values: no attribute names a key.
const (
	attrKeys        = attribute.Key("quorate.ddata.keys")        // A group of keys: "all", "durable", or a prefix with a *.
	attrOperation   = attribute.Key("quorate.ddata.operation")   // opGet, opUpdate or opDelete.
	attrConsistency = attribute.Key("quorate.ddata.consistency") // "local", "count", "majority" or "all".
)

// The operations in metrics.
const (
	opGet    = "get"
	opUpdate = "update"
	opDelete = "delete"
)

// metrics are the instruments of a replicator.
type metrics struct {
	r       *Replicator
	meter   *meter.Meter
	inquiry meter.Inquiry[protocol.Counts]
	stop    func()

	operations metric.Float64Histogram
}

// newMetrics makes the instrument of durations; the others are in the table.
func newMetrics(r *Replicator, p metric.MeterProvider) *metrics {
	m := meter.New(p, "github.com/quorate/quorate/ddata", r.self)
	return &metrics{
		r: r, meter: m, stop: func() {},
		operations: m.Seconds("quorate.ddata.operation.duration", "Time from a call of this node that waits for replicas to its answer or its error.",
			.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30),
	}
}

// start has the instruments observed until stop.
func (m *metrics) start() {
	m.stop = meter.ObserveOrLog(m.meter, metricsTable(), m.collect, m.r.log)
}

// collected holds what was counted: by the machine, by the tables, and by the replicator.
type collected struct {
	machine protocol.Counts // Zero when the machine was too busy to answer.
	groups  []groupStats
	stats   Stats
}

// groupStats is what a node holds of a group of keys.
type groupStats struct {
	table.Stats

	keys string
}

// collect reads all counters, and asks the machine for its own.
func (m *metrics) collect(ctx context.Context) *collected {
	c := &collected{stats: m.r.Stats()}
	c.machine, _ = m.inquiry.Ask(ctx, m.r.ctx.Done(), func(id uint64) error { return m.r.handle.Post(countsQuery{id}) })
	for _, g := range m.r.groups {
		c.groups = append(c.groups, groupStats{g.table.Stats(), g.name})
	}
	return c
}

// operated records an operation that is over, with the context of its caller.
func (m *metrics) operated(ctx context.Context, operation string, c Consistency, began time.Time, err error) {
	if !m.operations.Enabled(ctx) {
		return
	}
	attrs := []attribute.KeyValue{attrOperation.String(operation), attrConsistency.String(wordOfLevel(c))}
	if err != nil && !errors.Is(err, ErrNotFound) {
		attrs = append(attrs, meter.Fault.String(wordOf(err)))
	}
	m.operations.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(attrs...))
}

// wordOfLevel returns a level as the value of an attribute.
func wordOfLevel(c Consistency) string {
	switch c.name {
	case protocol.Count:
		return "count"
	case protocol.Majority:
		return "majority"
	case protocol.All:
		return "all"
	default:
		return "local"
	}
}

// wordOf returns an error as the value of an attribute.
func wordOf(err error) string {
	if is[*UnconfirmedError](err) {
		return "unconfirmed"
	}
	if is[*UnansweredError](err) {
		return "unanswered"
	}
	if is[*HomesLostError](err) {
		return "homes-lost"
	}
	if is[*NoQuorumError](err) {
		return "no-quorum"
	}
	if is[*RefusedError](err) {
		return "refused"
	}
	if is[*TypeError](err) {
		return "type"
	}
	if is[*FunctionError](err) {
		return "function"
	}
	switch {
	case errors.Is(err, ErrDeleted):
		return "deleted"
	case errors.Is(err, ErrTooLarge):
		return "too-large"
	case errors.Is(err, ErrFull):
		return "full"
	case errors.Is(err, ErrOverloaded):
		return "overloaded"
	case errors.Is(err, ErrClosed):
		return "closed"
	default:
		return "not-stored"
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
