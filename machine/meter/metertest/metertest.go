// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package metertest reads, in tests, the measurements of a part of a node.
//
//	reader := metertest.New()
//	node, err := membership.Start(ctx, cfg, membership.WithMeterProvider(reader.Provider()))
//	...
//	require.Equal(t, 3.0, reader.Value(t, "quorate.membership.members", attribute.String("quorate.member.status", "up")))
//
// Each method of a [Reader] collects anew, and finds the points of an instrument by its
// name. A Reader is safe for concurrent use.
package metertest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
)

// Reader collects from its own provider. Give one to each node: the values of
// nodes that share a provider are added up.
type Reader struct {
	reader   *sdk.ManualReader
	provider *sdk.MeterProvider
}

// Point is one series of an instrument at present.
type Point struct {
	Attributes attribute.Set
	Value      float64         // The number of values recorded, for a histogram.
	Sum        float64         // The sum of the values recorded, for a histogram.
	Traces     []trace.TraceID // Those of which a value is kept as an exemplar.
}

// Instrument describes an instrument that a part has made.
type Instrument struct {
	Scope       string // The import path of the part.
	Version     string // That of the scope.
	SchemaURL   string // That of the scope.
	Name        string
	Type        string // "counter", "up-down counter", "gauge" or "histogram".
	Unit        string
	Description string
	Attributes  []string // The attribute keys of all its points, sorted.
}

// New returns a reader with a provider of its own.
func New() *Reader {
	reader := sdk.NewManualReader()
	return &Reader{reader, sdk.NewMeterProvider(sdk.WithReader(reader))}
}

// Provider returns the provider to give to the part.
func (r *Reader) Provider() metric.MeterProvider { return r.provider }

// Value returns the sum of the points of an instrument that have all the given
// attributes, 0 if there are none. For a histogram it is the number of recorded
// values.
func (r *Reader) Value(t testing.TB, name string, with ...attribute.KeyValue) (sum float64) {
	t.Helper()
	for _, p := range r.Points(t, name) {
		if p.has(with) {
			sum += p.Value
		}
	}
	return sum
}

// Points returns every point of an instrument.
func (r *Reader) Points(t testing.TB, name string) (all []Point) {
	t.Helper()
	for _, s := range r.collect(t).ScopeMetrics {
		for _, m := range s.Metrics {
			if m.Name == name {
				points, _ := pointsOf(m)
				all = append(all, points...)
			}
		}
	}
	return all
}

// Instruments returns every instrument that has a point, sorted by name.
func (r *Reader) Instruments(t testing.TB) []Instrument {
	t.Helper()
	found := map[string]Instrument{}
	for _, s := range r.collect(t).ScopeMetrics {
		for _, m := range s.Metrics {
			points, typ := pointsOf(m)
			i := Instrument{
				Scope: s.Scope.Name, Version: s.Scope.Version, SchemaURL: s.Scope.SchemaURL,
				Name: m.Name, Type: typ, Unit: m.Unit, Description: m.Description, Attributes: found[m.Name].Attributes,
			}
			for _, p := range points {
				for _, kv := range p.Attributes.ToSlice() {
					i.Attributes = append(i.Attributes, string(kv.Key))
				}
			}
			slices.Sort(i.Attributes)
			i.Attributes = slices.Compact(i.Attributes)
			found[m.Name] = i
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Instrument) int { return cmp.Compare(a.Name, b.Name) })
}

func (r *Reader) collect(t testing.TB) metricdata.ResourceMetrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, r.reader.Collect(context.WithoutCancel(t.Context()), &all))
	return all
}

// has reports whether a point has all of these attributes.
func (p Point) has(with []attribute.KeyValue) bool {
	for _, kv := range with {
		if v, ok := p.Attributes.Value(kv.Key); !ok || v != kv.Value {
			return false
		}
	}
	return true
}

// pointsOf returns the points of an instrument, and its type in words.
func pointsOf(m metricdata.Metrics) (points []Point, typ string) {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		return numbers(data.DataPoints), counter(data.IsMonotonic)
	case metricdata.Sum[float64]:
		return numbers(data.DataPoints), counter(data.IsMonotonic)
	case metricdata.Gauge[int64]:
		return numbers(data.DataPoints), "gauge"
	case metricdata.Gauge[float64]:
		return numbers(data.DataPoints), "gauge"
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			points = append(points, Point{p.Attributes, float64(p.Count), p.Sum, tracesOf(p.Exemplars)})
		}
		return points, "histogram"
	default:
		return nil, "unknown"
	}
}

// tracesOf returns the traces of exemplars.
func tracesOf(all []metricdata.Exemplar[float64]) (traces []trace.TraceID) {
	for _, e := range all {
		traces = append(traces, trace.TraceID(e.TraceID))
	}
	return traces
}

func counter(monotonic bool) string {
	if monotonic {
		return "counter"
	}
	return "up-down counter"
}

func numbers[N int64 | float64](data []metricdata.DataPoint[N]) (points []Point) {
	for _, p := range data {
		points = append(points, Point{Attributes: p.Attributes, Value: float64(p.Value)})
	}
	return points
}
