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
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The attributes of the metrics. There are as many kinds as the program has, and
// no attribute names an entity or a shard.
const (
	attrKind    = attribute.Key("quorate.kind")
	attrPhase   = attribute.Key("quorate.shard.phase")    // "open", "serving" or "moving".
	attrOutcome = attribute.Key("quorate.move.outcome")   // How a move ended.
	attrQueue   = attribute.Key("quorate.queue")          // "window", "transit" or "mailbox".
	attrDuring  = attribute.Key("quorate.entity.failure") // What an entity failed at: "start" or "message".
)

// metrics are the instruments of a system.
type metrics struct {
	system  *System
	meter   *meter.Meter
	inquiry meter.Inquiry[protocol.Examined]
	stop    func()

	asks, moves metric.Float64Histogram

	hosted, entities, stuck, waiting                  metric.Int64ObservableUpDownCounter
	shards, deepest                                   metric.Int64ObservableGauge
	sent, received, handled, refused, failed, dropped metric.Int64ObservableCounter
	started, restarted, passivated, failures, panics  metric.Int64ObservableCounter
	malformed, misdirected, unsent, violations        metric.Int64ObservableCounter
	forged                                            metric.Int64ObservableCounter
}

// newMetrics makes the instruments. They are observed from start to stop.
func newMetrics(s *System, p metric.MeterProvider) *metrics {
	m := meter.New(p, "github.com/quorate/quorate/sharding", s.self)
	return &metrics{
		system: s, meter: m, stop: func() {},
		asks: m.Seconds("quorate.sharding.ask.duration", "Time from an ask of this node to its answer or its error.",
			.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60),
		moves: m.Seconds("quorate.sharding.move.duration", "Time that a shard was on its way from one home to another, seen by the coordinator.",
			.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120),
		hosted:   m.UpDown("quorate.sharding.shards.hosted", "{shard}", "Shards that this node hosts."),
		shards:   m.Gauge("quorate.sharding.shards", "{shard}", "Shards by how they are, where the coordinator runs: without a home, at rest, or on the way."),
		entities: m.UpDown("quorate.sharding.entities", "{entity}", "Entities in memory on this node."),
		stuck:    m.UpDown("quorate.sharding.entities.stuck", "{entity}", "Entities that do not return from what they are at."),
		waiting: m.UpDown("quorate.sharding.messages.waiting", "{message}",
			"Messages that wait on this node: accepted here and not acknowledged (window), for a home (transit), for an entity (mailbox, as found by the last sweep, at most 15 s ago)."),
		deepest:  m.Gauge("quorate.sharding.mailbox.deepest", "{message}", "Messages that wait for the entity for which most wait, as found by the last sweep."),
		sent:     m.Counter("quorate.sharding.messages.sent", "{message}", "Messages that Tell and Ask accepted on this node."),
		received: m.Counter("quorate.sharding.messages.received", "{message}", "Messages of other nodes that were delivered on this node, each once."),
		handled:  m.Counter("quorate.sharding.messages.handled", "{message}", "Messages that entities of this node have handled."),
		refused:  m.Counter("quorate.sharding.messages.refused", "{message}", "Messages that no entity of this node handled; the sender was told."),
		failed:   m.Counter("quorate.sharding.messages.failed", "{message}", "Messages without an asker, of this node, that failed after Tell had accepted them."),
		dropped: m.Counter("quorate.sharding.messages.dropped", "{message}",
			"Copies of messages that were dropped because their sender sends them again, or sent them twice. No message is lost by it."),
		malformed:   m.Counter("quorate.sharding.messages.malformed", "{message}", "Frames of other nodes that meant nothing."),
		misdirected: m.Counter("quorate.sharding.messages.misdirected", "{message}", "Messages for a kind or a shard that does not exist on this node."),
		forged:      m.Counter("quorate.sharding.messages.forged", "{message}", "Messages, acknowledgements and replies dropped since the member that sent them may not speak for whom they are from. A few are usual while shards move."),
		unsent:      m.Counter("quorate.sharding.replies.unsent", "{message}", "Replies and acknowledgements that could not be sent."),
		started:     m.Counter("quorate.sharding.entities.started", "{entity}", "Instances of entities that were started."),
		restarted:   m.Counter("quorate.sharding.entities.restarted", "{entity}", "Those among them that took the place of one that had failed."),
		passivated:  m.Counter("quorate.sharding.entities.passivated", "{entity}", "Instances that were stopped because they were idle, or asked for it."),
		failures:    m.Counter("quorate.sharding.entities.failures", "{failure}", "Instances that could not be started, or failed at a message or a timer."),
		panics:      m.Counter("quorate.sharding.entities.panics", "{panic}", "Panics of entities, and goroutines that they ended."),
		violations:  m.Counter("quorate.sharding.violations", "{violation}", "States seen that the protocol excludes. Must be 0."),
	}
}

// start begins to be observed. What cannot be is logged, and missing.
func (m *metrics) start() {
	stop, err := m.meter.Observe(m.observe)
	if m.stop = stop; err != nil {
		m.system.log.Warn("some metrics are missing", "error", err)
	}
}

// observe reads everything once.
func (m *metrics) observe(ctx context.Context, o metric.Observer) error {
	for _, r := range *m.system.routers.Load() {
		m.observeRegion(o, r)
	}
	c := &m.system.counters
	failed := m.system.losses.counts()
	for code := protocol.CodeUnreachable; int(code) < protocol.Codes; code++ {
		o.ObserveInt64(m.failed, int64(failed[code]), with(meter.Fault.String(wordOf(code))))
	}
	for why := protocol.DropDuplicate; why <= protocol.DropStopped; why++ {
		o.ObserveInt64(m.dropped, int64(c.dropped[why].Load()), with(meter.Fault.String(why.String())))
	}
	for fault, n := range m.system.forgeries.counts() {
		if fault := protocol.Fault(fault); fault != protocol.FaultNone {
			o.ObserveInt64(m.forged, int64(n), with(meter.Fault.String(fault.String())))
		}
	}
	o.ObserveInt64(m.malformed, int64(c.malformed.Load()))
	o.ObserveInt64(m.misdirected, int64(c.misdirected.Load()))
	o.ObserveInt64(m.unsent, int64(c.unsent.Load()))
	o.ObserveInt64(m.panics, int64(c.panics.Load()))
	o.ObserveInt64(m.violations, int64(c.violations.Load()))
	e, ok := m.inquiry.Ask(ctx, m.system.ended, func(id uint64) error { return m.system.control.Post(protocol.Examine{ID: id}) })
	if !ok {
		return nil
	}
	for _, k := range e.Kinds {
		for phase, n := range map[string]int{"open": k.Open, "serving": k.Serving, "moving": k.Moving} {
			o.ObserveInt64(m.shards, int64(n), with(attrKind.String(k.Kind), attrPhase.String(phase)))
		}
	}
	return nil
}

func (m *metrics) observeRegion(o metric.Observer, r *router) {
	var t protocol.Tally
	for i := range r.slots {
		r.slots[i].tally(&t)
	}
	kind := attrKind.String(r.name)
	of := func(i metric.Int64Observable, n int, more ...attribute.KeyValue) {
		o.ObserveInt64(i, int64(n), with(append(more, kind)...))
	}
	count := func(i metric.Int64Observable, n uint64, more ...attribute.KeyValue) { of(i, int(n), more...) }
	of(m.hosted, t.Hosted)
	of(m.entities, t.Entities)
	of(m.stuck, t.Stuck)
	of(m.waiting, t.Window, attrQueue.String("window"))
	of(m.waiting, t.Transit, attrQueue.String("transit"))
	of(m.waiting, t.Mailboxes, attrQueue.String("mailbox"))
	of(m.deepest, t.Deepest)
	count(m.sent, t.Sent)
	count(m.received, t.Received)
	count(m.handled, t.Handled)
	for code := protocol.CodeUnreachable; int(code) < protocol.Codes; code++ {
		if n := t.Refused[code]; n > 0 { // Most never come up.
			count(m.refused, n, meter.Fault.String(wordOf(code)))
		}
	}
	count(m.started, t.Started)
	count(m.restarted, t.Restarted)
	count(m.passivated, t.Passivated)
	count(m.failures, t.Failed, attrDuring.String("message"))
	count(m.failures, t.StartFailed, attrDuring.String("start"))
}

// tally adds what a cell has counted.
func (sl *slot) tally(t *protocol.Tally) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.cell.Tally(t)
}

func with(attrs ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(attrs...)
}

// moved records a move that has ended.
func (m *metrics) moved(e protocol.MoveEnded) {
	took := max(e.Moved.Ended.Sub(e.Moved.Started), 0) // Wall clocks are set back now and then.
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

// wordOf is a code as the value of an attribute.
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

// verdictOf says in a word, and in more of them, what went wrong with a message;
// nothing when nothing did. Where an error is of several sorts, the one counts that
// says most.
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
