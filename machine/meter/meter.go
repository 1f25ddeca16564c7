// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package meter makes the instruments of one part of a node: named after the
// part, told apart by node, and read from counters that exist anyway.
//
// A [Meter] collects what goes wrong while instruments are made, so that its
// user checks once. Most instruments are observable: nothing happens until
// somebody collects, and then one callback reads what the part has counted.
// A Meter is for one goroutine while instruments are made; the instruments are
// safe for concurrent use.
package meter

import (
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/quorate/quorate/gossip"
)

// The attributes that several parts give to what they measure. Each has few
// values, whatever the program does: no attribute names an entity.
const (
	// Direction is the convention's network.io.direction: [Transmit] or [Receive].
	Direction = attribute.Key("network.io.direction")
	// Fault is the convention's error.type: a word for what went wrong.
	Fault = attribute.Key("error.type")
)

// The values of [Direction].
const (
	Transmit = "transmit"
	Receive  = "receive"
)

// Meter makes the instruments of one part.
type Meter struct {
	meter    metric.Meter
	observed []metric.Observable
	faults   []error
}

// New returns a meter of the named scope, which is the import path of the part,
// on a node. The address of the node, without its incarnation, is an attribute of
// the scope: nodes in one process are told apart by it, and there are no more of
// them than the process has nodes. A nil provider is the global one, which does
// nothing until the program sets it.
func New(p metric.MeterProvider, scope string, node gossip.NodeID) *Meter {
	if p == nil {
		p = otel.GetMeterProvider()
	}
	return &Meter{meter: p.Meter(scope, metric.WithInstrumentationAttributes(attribute.String("quorate.node", node.Address.String())))}
}

// Counter makes an observable counter of what only grows.
func (m *Meter) Counter(name, unit, meaning string) metric.Int64ObservableCounter {
	i, err := m.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(meaning))
	return observed[metric.Int64ObservableCounter](m, i, noop.Int64ObservableCounter{}, name, err)
}

// UpDown makes an observable counter of what grows and shrinks, and whose sum
// over all nodes means something.
func (m *Meter) UpDown(name, unit, meaning string) metric.Int64ObservableUpDownCounter {
	i, err := m.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(meaning))
	return observed[metric.Int64ObservableUpDownCounter](m, i, noop.Int64ObservableUpDownCounter{}, name, err)
}

// Gauge makes an observable gauge: the view of one node, not to be summed.
func (m *Meter) Gauge(name, unit, meaning string) metric.Int64ObservableGauge {
	i, err := m.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(meaning))
	return observed[metric.Int64ObservableGauge](m, i, noop.Int64ObservableGauge{}, name, err)
}

// FloatGauge is [Meter.Gauge] for numbers that are not whole.
func (m *Meter) FloatGauge(name, unit, meaning string) metric.Float64ObservableGauge {
	i, err := m.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(meaning))
	return observed[metric.Float64ObservableGauge](m, i, noop.Float64ObservableGauge{}, name, err)
}

// Seconds makes a histogram of durations with the given upper bounds of its
// buckets, in seconds, increasing. Whoever records asks [metric.Float64Histogram]
// first whether it is enabled, since reading the clock costs more than that.
func (m *Meter) Seconds(name, meaning string, bounds ...float64) metric.Float64Histogram {
	i, err := m.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(meaning), metric.WithExplicitBucketBoundaries(bounds...))
	return made[metric.Float64Histogram](m, i, noop.Float64Histogram{}, name, err)
}

// Observe has f called at each collection, to observe the instruments made so
// far, until stop is called. F is called on the goroutine of whoever collects,
// several times at once if several do, and must return soon. The error names
// every instrument that could not be made; the others work.
func (m *Meter) Observe(f metric.Callback) (stop func(), err error) {
	registration, err := m.meter.RegisterCallback(f, m.observed...)
	if err != nil {
		return func() {}, errors.Join(append(m.faults, err)...)
	}
	return sync.OnceFunc(func() { _ = registration.Unregister() }), errors.Join(m.faults...) // What was not registered needs no end.
}

// observed notes an instrument that is observed by the callback.
func observed[T metric.Observable](m *Meter, i, instead T, name string, err error) T {
	i = made(m, i, instead, name, err)
	m.observed = append(m.observed, i)
	return i
}

// made returns an instrument that works: one that could not be made is replaced
// by one that does nothing, so that a telemetry that is at fault costs the node
// nothing else.
func made[T any](m *Meter, i, instead T, name string, err error) T {
	if err != nil {
		m.faults = append(m.faults, fmt.Errorf("meter: instrument %s: %w", name, err))
		return instead
	}
	return i
}
