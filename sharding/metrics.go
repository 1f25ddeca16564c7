// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/recall"
	"github.com/quorate/quorate/sharding/internal/runtime"
)

// The metrics of sharding: newMetrics makes the instruments of durations, which moved and
// asked record as they happen; start has the instruments of the table observed, for which
// collect reads all counters. Last, the words that name errors in attributes.

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

// metrics are the instruments of a system.
type metrics struct {
	system  *System
	meter   *meter.Meter
	inquiry meter.Inquiry[control.Examined]
	stop    func()

	asks, moves metric.Float64Histogram
}

// newMetrics makes the instruments of durations; the other instruments are in [table].
func newMetrics(s *System, p metric.MeterProvider) *metrics {
	m := meter.New(p, "github.com/quorate/quorate/sharding", s.self)
	return &metrics{
		system: s, meter: m, stop: func() {},
		asks: m.Seconds("quorate.sharding.ask.duration", "Time from an ask of this node to its answer or its error.",
			.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60),
		moves: m.Seconds("quorate.sharding.move.duration", "Time that a shard was on its way from one home to another, seen by the coordinator.",
			.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120),
	}
}

// start has the instruments observed until stop.
func (m *metrics) start() {
	m.stop = meter.ObserveOrLog(m.meter, table(), m.collect, m.system.log)
}

// collected holds the counters of a system that [System.counted] has read: [System.Stats]
// shows some of them, and metrics show all.
type collected struct {
	kinds  []kindTally
	counts *counters
	// leased says that shards have leases, of which this node has lost leasesLost.
	leased     bool
	leasesLost uint64
	failed     [protocol.Codes]uint64 // Tells that failed after they had been accepted.
	forged     [cell.Faults]uint64    // Frames of members in a name that is not their own.
	// coordinated describes the kinds whose coordinator runs here, for metrics alone; as it was before
	// when the control machine is too busy to answer.
	coordinated  []control.Coordinated
	coordinators map[string]CoordinatorInfo // Those of all kinds of this node.
}

// kindTally is the sum of the counters and of the present numbers of the cells of a kind.
type kindTally struct {
	cell.Tally

	kind    string
	limits  runtime.LimitStats
	senders int // The senders of this node that wait for room.
	// unleased is the number of shards that wait for their leases.
	unleased int

	remembered bool // The kind remembers its entities, and remembers says how that goes.
	remembers  recall.Stats
}

// collect reads all counters, and asks the control machine for the phases of the shards.
func (m *metrics) collect(ctx context.Context) *collected {
	c := m.system.counted()
	e, _ := m.inquiry.Ask(ctx, m.system.ended, func(id uint64) error { return m.system.control.Post(control.Examine{ID: id}) })
	c.coordinated, c.coordinators = e.Kinds, m.system.Coordinators()
	return c
}

func with(attrs ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(attrs...)
}

// moved records a move that has ended.
func (m *metrics) moved(e control.MoveEnded) {
	took := max(e.Moved.Ended.Sub(e.Moved.Started), 0) // A wall clock may have been set back meanwhile.
	m.moves.Record(m.system.ctx, took.Seconds(), with(attrKind.String(e.Kind), attrOutcome.String(e.Moved.Outcome.String())))
}

// asked records an ask that is over.
func (m *metrics) asked(r *router, began machine.Instant, fault string) {
	took := m.system.clock.Instant().Sub(began).Seconds()
	if fault == "" {
		m.asks.Record(m.system.ctx, took, r.success)
		return
	}
	m.asks.Record(m.system.ctx, took, with(attrKind.String(r.name), meter.Fault.String(fault)))
}

// wordOf returns a code as the value of an attribute.
func wordOf(c protocol.Code) string {
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

// verdictOf says what went wrong with a message, in a word for an attribute and in a text
// for people; both are empty when nothing went wrong. An error that wraps several
// sentinels has the word of the most specific.
func verdictOf(reply *protocol.Reply, err error) (fault, text string) {
	switch {
	case err != nil:
		return wordOfError(err), err.Error()
	case reply != nil && reply.Code != protocol.CodeOK:
		return wordOf(reply.Code), reply.Detail
	default:
		return "", ""
	}
}

func wordOfError(err error) string {
	for code := protocol.CodeUnreachable; int(code) < protocol.Codes; code++ {
		if code != protocol.CodeNotDelivered && errors.Is(err, errorOf(code)) {
			return wordOf(code)
		}
	}
	if _, ok := errors.AsType[*SettingsError](err); ok {
		return "settings"
	}
	if errors.Is(err, ErrInvalid) {
		return "invalid"
	}
	return wordOf(protocol.CodeNotDelivered)
}

// ofKind shows values with the name of a kind.
func ofKind(kind string, show meter.Show) meter.Show {
	return func(n int64, attrs ...attribute.KeyValue) { show(n, append(attrs, attrKind.String(kind))...) }
}
