// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/quorate/quorate/gossip"
)

// Attributes that several parts give their measurements. Each has few values, whatever
// the program does: no attribute names an entity.
const (
	// Direction is the convention's network.io.direction: [Transmit] or [Receive].
	Direction = semconv.NetworkIODirectionKey
	// Fault is the convention's error.type: a word for the fault.
	Fault = semconv.ErrorTypeKey
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

// New returns a meter for a part on a node. Scope is the import path of the part. The
// address of the node, without its incarnation, is an attribute of the scope: it
// distinguishes the nodes in one process, and has no more values than the process has
// nodes. The version of the part's module and [SchemaURL] are stated with it. A nil provider means the global one,
// which does nothing until the program sets it.
func New(p metric.MeterProvider, scope string, node gossip.NodeID) *Meter {
	if p == nil {
		p = otel.GetMeterProvider()
	}
	return &Meter{meter: p.Meter(scope, metric.WithInstrumentationVersion(scopeVersion(scope)), metric.WithSchemaURL(SchemaURL),
		metric.WithInstrumentationAttributes(attribute.String("quorate.node", node.Address.String())))}
}

// Seconds makes a histogram of durations with the given upper bounds of its buckets,
// in seconds, increasing. A caller that records asks [metric.Float64Histogram] first
// whether it is enabled, since reading the clock costs more than asking.
func (m *Meter) Seconds(name, meaning string, bounds ...float64) metric.Float64Histogram {
	i, err := m.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(meaning), metric.WithExplicitBucketBoundaries(bounds...))
	return made[metric.Float64Histogram](m, i, noop.Float64Histogram{}, name, err)
}

// made returns the instrument, or an instrument that does nothing when it could not be
// made, so that faulty telemetry does the node no other harm.
func made[T any](m *Meter, i, instead T, name string, err error) T {
	if err != nil {
		m.faults = append(m.faults, fmt.Errorf("meter: instrument %s: %w", name, err))
		return instead
	}
	return i
}
