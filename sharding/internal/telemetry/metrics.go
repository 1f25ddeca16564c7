// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/remembering"
	"github.com/quorate/quorate/sharding/internal/runtime"
)

// The metrics of sharding: New makes the instruments of durations, which Moved and
// Asked record as they happen; Observe has the instruments of the table observed, for which
// others collect all counters. Last, the words that name codes in attributes.

// The attributes of the metrics. They take few values: the program has few kinds, and
// no attribute names an entity or a shard.
const (
	attrKind    = attribute.Key("quorate.kind")
	attrPhase   = attribute.Key("quorate.shard.phase")       // "open", "serving" or "moving".
	attrOutcome = attribute.Key("quorate.move.outcome")      // How a move ended.
	attrQueue   = attribute.Key("quorate.queue")             // "window", "transit" or "mailbox".
	attrCause   = attribute.Key("quorate.passivation.cause") // "asked", "idle" or "limit".
	attrChange  = attribute.Key("quorate.remembered.change") // "remember" or "forget".
	attrDuring  = attribute.Key("quorate.entity.failure")    // What an entity failed at: "start" or "message".
)

// Metrics are the instruments of a system.
type Metrics struct {
	meter *meter.Meter
	stop  func()

	asks, moves metric.Float64Histogram
}

// New makes the instruments of durations; the other instruments are in [table].
func New(p metric.MeterProvider, self gossip.NodeID) *Metrics {
	m := meter.New(p, "github.com/quorate/quorate/sharding", self)
	return &Metrics{
		meter: m, stop: func() {},
		asks: m.Seconds("quorate.sharding.ask.duration", "Time from an ask of this node to its answer or its error.",
			.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60),
		moves: m.Seconds("quorate.sharding.move.duration", "Time that a shard was on its way from one home to another, seen by the coordinator.",
			.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120),
	}
}

// Observe has the instruments observed until [Metrics.Stop].
func (m *Metrics) Observe(collect func(context.Context) *Collected, log *slog.Logger) {
	m.stop = meter.ObserveOrLog(m.meter, table(), collect, log)
}

// Stop ends the observing.
func (m *Metrics) Stop() { m.stop() }

// Moved records a move that has ended.
func (m *Metrics) Moved(e control.MoveEnded) {
	took := max(e.Moved.Ended.Sub(e.Moved.Started), 0) // A wall clock may have been set back meanwhile.
	m.moves.Record(context.Background(), took.Seconds(), with(attrKind.String(e.Kind), attrOutcome.String(e.Moved.Outcome.String())))
}

// TimesAsks reports whether the durations of asks with a context are recorded.
func (m *Metrics) TimesAsks(ctx context.Context) bool { return m.asks.Enabled(ctx) }

// Asks records the asks of one kind.
type Asks struct {
	metrics *Metrics
	kind    attribute.KeyValue
	success metric.MeasurementOption // The attributes of an ask that was answered.
}

// NewAsks returns what records the asks of a kind.
func (m *Metrics) NewAsks(kind string) Asks {
	return Asks{m, attrKind.String(kind), with(attrKind.String(kind))}
}

// Asked records an ask that is over, in the context of its span: with what fault, in a word; empty for none.
func (a Asks) Asked(ctx context.Context, took time.Duration, fault string) {
	if fault == "" {
		a.metrics.asks.Record(ctx, took.Seconds(), a.success)
		return
	}
	a.metrics.asks.Record(ctx, took.Seconds(), with(a.kind, meter.Fault.String(fault)))
}

func with(attrs ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(attrs...)
}

// Counters are the counters of a system that no cell keeps.
type Counters struct {
	Malformed, Misdirected, Violations atomic.Uint64
	Panics, Unsent                     atomic.Uint64
	Dropped                            [cell.DropStopped + 1]atomic.Uint64
	Stuck                              atomic.Int64
}

// Collected holds the counters of a system as they were read.
type Collected struct {
	Kinds    []KindTally
	Counters *Counters
	// Leased says that shards have leases, of which this node has lost LeasesLost.
	Leased     bool
	LeasesLost uint64
	Failed     [protocol.Codes]uint64 // Tells that failed after they had been accepted.
	Forged     [cell.Faults]uint64    // Frames of members in a name that is not their own.
	// KindCounts describes the kinds whose coordinator runs here, for metrics alone; as it was before
	// when the control machine is too busy to answer.
	KindCounts []control.KindCounts
	// Missing says of each kind of this node whether no member can coordinate it; a kind of which that is not known is
	// not in it.
	Missing map[string]bool
}

// KindTally is the sum of the counters and of the present numbers of the cells of a kind.
type KindTally struct {
	cell.Tally

	Kind    string
	Limits  runtime.LimitStats
	Senders int // The senders of this node that wait for room.
	// Unleased is the number of shards that wait for their leases.
	Unleased int

	Remembered bool // The kind remembers its entities, and Remembers says how that goes.
	Remembers  remembering.Stats
}

// Word returns a code as the value of an attribute.
func Word(c protocol.Code) string {
	switch c {
	case protocol.CodeUnreachable:
		return "unreachable"
	case protocol.CodeOverloaded:
		return "overloaded"
	case protocol.CodeNotDelivered:
		return "not-delivered"
	case protocol.CodeEntityFailed:
		return "entity-failed"
	case protocol.CodeNoStanding:
		return "no-standing"
	case protocol.CodeExpired:
		return "expired"
	default:
		return "unknown-outcome"
	}
}

// ofKind shows values with the name of a kind.
func ofKind(kind string, observe meter.Observer) meter.Observer {
	return func(n int64, attrs ...attribute.KeyValue) { observe(n, append(attrs, attrKind.String(kind))...) }
}
