// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/transport"
)

// The attributes of the node's metrics. Peers are named by address: a node
// monitors as many as the failure detector is configured to, or the whole of a
// small cluster.
const (
	attrStatus    = attribute.Key("quorate.member.status")
	attrVerdict   = attribute.Key("quorate.verdict") // "unreachable" or "reachable".
	attrPeer      = attribute.Key("quorate.peer")
	attrRound     = attribute.Key("quorate.gossip.round") // "repair" or "push".
	attrMessage   = attribute.Key("quorate.message.type")
	attrComponent = attribute.Key("quorate.component")
	attrDecision  = attribute.Key("quorate.decision.topic")
	attrStrategy  = attribute.Key("quorate.policy")
)

// metrics are the instruments of a node, and what is counted for them and for
// nothing else.
type metrics struct {
	node    *Node
	traffic sync.Map // Of tallyKey to *tally.
	beats   beats
	lapses  lapses
	inquiry meter.Inquiry[protocol.Examined]
	stops   []func()

	roundTrip, calls metric.Float64Histogram

	members, unreachable, converged, standing       metric.Int64ObservableGauge
	lost, marks, rounds                             metric.Int64ObservableCounter
	phi                                             metric.Float64ObservableGauge
	messages, bytes, refused, unsent                metric.Int64ObservableCounter
	undecodable, oversize, strangers                metric.Int64ObservableCounter
	decisions, steps, inboxRefused, abandoned, busy metric.Int64ObservableCounter
	inbox                                           metric.Int64ObservableUpDownCounter
}

// newMetrics makes the instruments of a node. Nothing is observed before start.
func newMetrics(n *Node, p metric.MeterProvider) (*metrics, *meter.Meter) {
	m := meter.New(p, "github.com/quorate/quorate/membership", n.self)
	return &metrics{
		node:        n,
		members:     m.Gauge("quorate.membership.members", "{member}", "Members of the cluster by status, as this node knows them."),
		unreachable: m.Gauge("quorate.membership.unreachable", "{member}", "Members that somebody who monitors them does not reach, as this node knows it."),
		converged:   m.Gauge("quorate.membership.converged", "{node}", "1 when everybody who counts has seen what this node knows, else 0."),
		standing:    m.Gauge("quorate.membership.standing", "{node}", "1 while this node may host, else 0."),
		lost:        m.Counter("quorate.membership.standing.lost", "{loss}", "Times that this node lost its standing, except by leaving in order."),
		marks:       m.Counter("quorate.membership.marks", "{mark}", "Verdicts of this node about members that it monitors."),
		phi:         m.FloatGauge("quorate.membership.phi", "{phi}", "Suspicion of each monitored node: the failure detector accuses it at the configured threshold. 0 with a detector that knows no degrees."),
		roundTrip: m.Seconds("quorate.membership.heartbeat.duration", "Time from sending a heartbeat to its answer.",
			.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10),
		rounds:      m.Counter("quorate.membership.gossip.rounds", "{round}", "Rounds of gossip that this node began."),
		refused:     m.Counter("quorate.membership.refused", "{message}", "Messages, commands and nodes that membership refused."),
		messages:    m.Counter("quorate.node.messages", "{message}", "Messages between the components of the nodes: gossip, heartbeats, coordination. Messages to entities are not among them."),
		bytes:       m.Counter("quorate.node.io", "By", "Encoded bytes of these messages."),
		unsent:      m.Counter("quorate.node.messages.unsent", "{message}", "Messages of components that no lane took; the protocols repeat what matters."),
		undecodable: m.Counter("quorate.node.messages.undecodable", "{message}", "Messages received for components that meant nothing."),
		strangers:   m.Counter("quorate.node.messages.strangers", "{message}", "Messages dropped since who sent them is no member of the cluster. A few are usual while nodes join and leave."),
		oversize:    m.Counter("quorate.node.messages.oversize", "{message}", "Messages received that were larger than who sent them may send."),
		decisions:   m.Counter("quorate.node.decisions", "{decision}", "Decisions that this node took."),
		steps:       m.Counter("quorate.node.steps", "{step}", "Inputs that the components of this node were fed."),
		inbox:       m.UpDown("quorate.node.inbox", "{input}", "Inputs that wait for the components of this node."),
		inboxRefused: m.Counter("quorate.node.inbox.refused", "{input}",
			"Inputs refused because too many waited."),
		calls: m.Seconds("quorate.strategy.call.duration", "Time that a strategy took that is called, not built in.",
			.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10),
		busy:      m.Counter("quorate.strategy.calls.busy", "{call}", "Calls not tried because an earlier one had not returned."),
		abandoned: m.Counter("quorate.strategy.calls.abandoned", "{call}", "Calls that ignored the end of their time and were left behind."),
	}, m
}

// start begins to be observed, until stop. What cannot be is logged: telemetry
// that is at fault never holds the node up.
func (m *metrics) start(of *meter.Meter, p metric.MeterProvider) {
	stop, err := of.Observe(m.observe)
	stopTransport, errTransport := transport.Observe(p, m.node.self, m.node.transport.Counters)
	m.stops = []func(){stop, stopTransport}
	if err := errors.Join(err, errTransport); err != nil {
		m.node.log.Warn("some metrics are missing", "error", err)
	}
}

// stop ends the observation.
func (m *metrics) stop() {
	for _, stop := range m.stops {
		stop()
	}
}

// observe reads everything once.
func (m *metrics) observe(ctx context.Context, o metric.Observer) error {
	m.observeView(o)
	m.observeTraffic(o)
	m.observeDriver(o)
	m.observeMachine(o)
	if e, ok := m.examine(ctx); ok {
		for _, s := range e.Monitored {
			o.ObserveFloat64(m.phi, s.Phi, with(attrPeer.String(s.Node.Address.String())))
		}
	}
	return nil
}

func (m *metrics) observeView(o metric.Observer) {
	view := m.node.View()
	var count [gossip.Removed]int64
	for _, member := range view.State.Members() {
		count[member.Status]++
	}
	for status := gossip.Joining; status < gossip.Removed; status++ {
		o.ObserveInt64(m.members, count[status], with(attrStatus.String(status.String())))
	}
	now := m.node.clock.Instant()
	o.ObserveInt64(m.unreachable, int64(len(view.State.Unreachable())))
	o.ObserveInt64(m.converged, truth(view.Converged))
	o.ObserveInt64(m.standing, truth(m.node.standing.HeldAt(now)))
	o.ObserveInt64(m.lost, int64(m.lapses.count(now)))
}

func (m *metrics) observeTraffic(o metric.Observer) {
	m.traffic.Range(func(key, value any) bool {
		k, t := key.(tallyKey), value.(*tally)
		attrs := with(attrComponent.String(k.component), attrMessage.String(t.name), meter.Direction.String(k.direction))
		o.ObserveInt64(m.messages, int64(t.messages.Load()), attrs)
		o.ObserveInt64(m.bytes, int64(t.bytes.Load()), attrs)
		return true
	})
	c := &m.node.counters
	o.ObserveInt64(m.unsent, int64(c.unsent.Load()))
	o.ObserveInt64(m.undecodable, int64(c.undecodable.Load()))
	o.ObserveInt64(m.strangers, int64(m.node.strangers.count.Load()))
	o.ObserveInt64(m.oversize, int64(c.oversize.Load()))
	for _, t := range m.node.decisions.totals() {
		o.ObserveInt64(m.decisions, int64(t.n), with(attrComponent.String(t.component), attrDecision.String(t.topic)))
	}
}

func (m *metrics) observeDriver(o metric.Observer) {
	s := m.node.driver.Stats()
	o.ObserveInt64(m.steps, int64(s.Steps))
	o.ObserveInt64(m.inbox, int64(s.Waiting))
	o.ObserveInt64(m.inboxRefused, int64(s.Refused))
	o.ObserveInt64(m.busy, int64(s.Busy))
	o.ObserveInt64(m.abandoned, int64(s.Abandoned))
}

func (m *metrics) observeMachine(o metric.Observer) {
	c := m.node.counters.machine.load()
	o.ObserveInt64(m.marks, int64(c.Marks), with(attrVerdict.String("unreachable")))
	o.ObserveInt64(m.marks, int64(c.Clears), with(attrVerdict.String("reachable")))
	o.ObserveInt64(m.rounds, int64(c.Rounds), with(attrRound.String("repair")))
	o.ObserveInt64(m.rounds, int64(c.Pushes), with(attrRound.String("push")))
	for r := protocol.RefusedNotReady; r <= protocol.RefusalLast; r++ {
		if n := c.Refused[r]; n > 0 { // Most reasons never come up.
			o.ObserveInt64(m.refused, int64(n), with(meter.Fault.String(r.String())))
		}
	}
}

func with(attrs ...attribute.KeyValue) metric.ObserveOption { return metric.WithAttributes(attrs...) }

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
