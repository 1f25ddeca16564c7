// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Row declares one observable instrument of a part, which is read from an S. The zero
// value is not valid: rows come from [Total], [Counter], [UpDown], [Gauge] and [FloatGauge].
type Row[S any] struct {
	// instrument makes the instrument, and returns the function that observes its points at a
	// collection.
	instrument func(*Meter) func(metric.Observer, S)
}

// Observer is told the value of an instrument for one set of attributes. A row calls it once
// for each set that has a value.
type Observer func(n int64, attrs ...attribute.KeyValue)

// Total declares a counter of what only grows, without attributes.
func Total[S any](name, unit, meaning string, read func(S) uint64) Row[S] {
	return Counter(name, unit, meaning, func(s S, observe Observer) { observe(int64(read(s))) })
}

// Counter declares a counter of what only grows.
func Counter[S any](name, unit, meaning string, read func(S, Observer)) Row[S] {
	return whole[S, metric.Int64ObservableCounter](name, read, noop.Int64ObservableCounter{}, func(m metric.Meter) (metric.Int64ObservableCounter, error) {
		return m.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(meaning))
	})
}

// UpDown declares a counter of what grows and shrinks, and whose sum over all nodes
// means something.
func UpDown[S any](name, unit, meaning string, read func(S, Observer)) Row[S] {
	return whole[S, metric.Int64ObservableUpDownCounter](name, read, noop.Int64ObservableUpDownCounter{}, func(m metric.Meter) (metric.Int64ObservableUpDownCounter, error) {
		return m.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(meaning))
	})
}

// Gauge declares a gauge: the view of one node, not to be summed.
func Gauge[S any](name, unit, meaning string, read func(S, Observer)) Row[S] {
	return whole[S, metric.Int64ObservableGauge](name, read, noop.Int64ObservableGauge{}, func(m metric.Meter) (metric.Int64ObservableGauge, error) {
		return m.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(meaning))
	})
}

// FloatGauge is [Gauge] for numbers that are not whole.
func FloatGauge[S any](name, unit, meaning string, read func(s S, observe func(v float64, attrs ...attribute.KeyValue))) Row[S] {
	return Row[S]{func(m *Meter) func(metric.Observer, S) {
		gauge, err := m.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(meaning))
		i := made[metric.Float64ObservableGauge](m, gauge, noop.Float64ObservableGauge{}, name, err)
		m.observed = append(m.observed, i)
		return func(o metric.Observer, s S) {
			read(s, func(v float64, attrs ...attribute.KeyValue) { o.ObserveFloat64(i, v, metric.WithAttributes(attrs...)) })
		}
	}}
}

// whole declares an instrument of whole numbers. Where it cannot be made, instead, which does
// nothing, takes its place.
func whole[S any, I metric.Int64Observable](name string, read func(S, Observer), instead I, create func(metric.Meter) (I, error)) Row[S] {
	return Row[S]{func(m *Meter) func(metric.Observer, S) {
		instrument, err := create(m.meter)
		i := made(m, instrument, instead, name, err)
		m.observed = append(m.observed, i)
		return func(o metric.Observer, s S) {
			read(s, func(n int64, attrs ...attribute.KeyValue) { o.ObserveInt64(i, n, metric.WithAttributes(attrs...)) })
		}
	}}
}

// Observe makes the instruments of a table, and observes them at each collection until stop
// is called. Read returns what the part has counted; it is called on the goroutine of
// whoever collects, several times at once if several do, and must return soon. The
// error names every instrument of the meter that could not be made; the others work.
func Observe[S any](m *Meter, table []Row[S], read func(context.Context) S) (stop func(), err error) {
	m.observed = nil
	rows := make([]func(metric.Observer, S), 0, len(table))
	for _, row := range table {
		rows = append(rows, row.instrument(m))
	}
	registration, err := m.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		s := read(ctx)
		for _, observe := range rows {
			observe(o, s)
		}
		return nil
	}, m.observed...)
	if err != nil {
		return func() {}, errors.Join(append(m.faults, err)...)
	}
	return sync.OnceFunc(func() { _ = registration.Unregister() }), errors.Join(m.faults...) // What was not registered needs no end.
}

// ObserveOrLog is [Observe] for a part that goes on without the instruments that could not
// be made, since faulty telemetry must not keep a node from running. The log says which
// are missing, at level warn.
func ObserveOrLog[S any](m *Meter, table []Row[S], read func(context.Context) S, log *slog.Logger) (stop func()) {
	stop, err := Observe(m, table, read)
	if err != nil {
		log.Warn("some metrics are missing", "error", err)
	}
	return stop
}
