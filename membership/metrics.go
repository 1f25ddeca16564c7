// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/transport"
)

// The instruments of a node are made once ([newMetrics], [table]), registered while the
// node runs ([metrics.start], [metrics.stop]), and read in one go at each collection
// ([metrics.collect]).

// These are the attributes of the node's metrics. Peers are named by address: a node
// monitors as many as the failure detector is configured to, or the whole of a small
// cluster.
const (
	attrStatus    = attribute.Key("quorate.member.status")
	attrVerdict   = attribute.Key("quorate.verdict") // "unreachable" or "reachable".
	attrPeer      = attribute.Key("quorate.peer")
	attrRound     = attribute.Key("quorate.gossip.round") // "repair" or "push".
	attrMessage   = attribute.Key("quorate.message.type")
	attrComponent = attribute.Key("quorate.component")
	attrDecision  = attribute.Key("quorate.decision.topic")
	attrStrategy  = attribute.Key("quorate.policy")
	attrLookup    = attribute.Key("quorate.lookup.result") // "found", "empty" or "failed".
)

// metrics are the instruments of a node, and the counters that exist for them alone.
type metrics struct {
	node    *Node
	traffic sync.Map // Of tallyKey to *tally.
	beats   heartbeats
	lapses  lapseCounter
	inquiry meter.Inquiry[protocol.Examined]
	stops   []func()

	roundTrip, calls metric.Float64Histogram
}

// newMetrics makes the instruments that are recorded as things happen; the others are in
// [table]. Nothing is observed before start.
func newMetrics(n *Node, p metric.MeterProvider) (*metrics, *meter.Meter) {
	m := meter.New(p, "github.com/quorate/quorate/membership", n.self)
	return &metrics{
		node: n,
		roundTrip: m.Seconds("quorate.membership.heartbeat.duration", "Time from sending a heartbeat to its answer.",
			.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10),
		calls: m.Seconds("quorate.strategy.call.duration", "Time that a strategy took that is called, not built in.",
			.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10),
	}, m
}

// start registers the instruments until stop. A failure is logged: faulty telemetry never
// keeps a node from running.
func (m *metrics) start(of *meter.Meter, p metric.MeterProvider) {
	stop, err := meter.Observe(of, table(), m.collect)
	stopTransport, errTransport := transport.Observe(p, m.node.self, m.node.transport.Counters)
	m.stops = []func(){stop, stopTransport}
	if err := errors.Join(err, errTransport); err != nil {
		m.node.log.Warn("some metrics are missing", "error", err)
	}
}

// stop unregisters the instruments.
func (m *metrics) stop() {
	for _, stop := range m.stops {
		stop()
	}
}

// collected is everything that was read at one collection.
type collected struct {
	Stats

	metrics *metrics // Has the counters by type of message.
	view    View
	held    bool   // The node has standing.
	lost    uint64 // Times that the node lost its standing.
	// strangers is how many nodes of the name have nothing to do with this one.
	strangers int
	refused   [protocol.RefusalLast + 1]uint64
	// monitored is what the failure detectors hold; none if the machine was too busy to
	// answer.
	monitored []fd.Status[gossip.NodeID]
}

// collect reads everything once for a collection.
func (m *metrics) collect(ctx context.Context) *collected {
	now := m.node.clock.Instant()
	e, _ := m.inquiry.Ask(ctx, m.node.life.stopping, func(id uint64) error { return m.node.machine.Post(protocol.Examine{ID: id}) })
	return &collected{
		Stats: m.node.Stats(), metrics: m, view: m.node.View(), held: m.node.standing.HeldAt(now), lost: m.lapses.count(now),
		strangers: len(m.node.Strangers()),
		refused:   m.node.counters.machine.load().Refused, monitored: e.Monitored,
	}
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
