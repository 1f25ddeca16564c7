// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/meter/metertest"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/internal/wire"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/memory"
)

// metered is a cluster whose nodes each have a reader.
func (p *place) metered(n int, opts ...membership.Option) (nodes []*membership.Node, readers []*metertest.Reader) {
	p.t.Helper()
	for i := range n {
		reader := metertest.New()
		readers = append(readers, reader)
		nodes = append(nodes, p.start(config(i+1), append([]membership.Option{membership.WithMeterProvider(reader.Provider())}, opts...)...))
	}
	p.awaitUp(nodes...)
	return nodes, readers
}

func status(s gossip.Status) attribute.KeyValue {
	return attribute.String("quorate.member.status", s.String())
}

// What a cluster in good health measures: members, convergence, standing,
// heartbeats and their answers, gossip, decisions.
func TestMetricsOfAHealthyCluster(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes, readers := p.metered(3)
		<-time.After(10 * time.Second)
		r := readers[0]
		require.InDelta(t, 3, r.Value(t, "quorate.membership.members", status(gossip.Up)), 0)
		require.InDelta(t, 3, r.Value(t, "quorate.membership.members"), 0)
		require.Zero(t, r.Value(t, "quorate.membership.unreachable"))
		require.InDelta(t, 1, r.Value(t, "quorate.membership.converged"), 0)
		require.InDelta(t, 1, r.Value(t, "quorate.membership.standing"), 0)
		require.Zero(t, r.Value(t, "quorate.membership.standing.lost"))
		require.Zero(t, r.Value(t, "quorate.membership.marks"))
		require.Len(t, r.Points(t, "quorate.membership.phi"), 2, "one for each monitored node")
		require.Less(t, r.Value(t, "quorate.membership.phi"), 8.0)
		for _, round := range []string{"repair", "push"} {
			require.NotZero(t, r.Value(t, "quorate.membership.gossip.rounds", attribute.String("quorate.gossip.round", round)), round)
		}
		answered := r.Points(t, "quorate.membership.heartbeat.duration")[0]
		require.GreaterOrEqual(t, answered.Value, 2*10.0, "two nodes answer each second")
		require.Less(t, answered.Sum, 1.0, "at once, in this network")
		for _, typ := range []string{"heartbeat", "heartbeat-reply", "gossip-delta", "welcome"} {
			of := []attribute.KeyValue{attribute.String("quorate.component", "membership"), attribute.String("quorate.message.type", typ)}
			require.NotZero(t, r.Value(t, "quorate.node.messages", of...), typ)
			require.NotZero(t, r.Value(t, "quorate.node.io", of...), typ)
		}
		out, in := attribute.String("network.io.direction", "transmit"), attribute.String("network.io.direction", "receive")
		beat := attribute.String("quorate.message.type", "heartbeat")
		sent := r.Value(t, "quorate.node.messages", beat, out)
		got := readers[1].Value(t, "quorate.node.messages", beat, in) + readers[2].Value(t, "quorate.node.messages", beat, in)
		require.Positive(t, got)
		require.Positive(t, sent)
		require.NotZero(t, r.Value(t, "quorate.node.decisions", attribute.String("quorate.decision.topic", "leader")))
		require.NotZero(t, r.Value(t, "quorate.node.steps"))
		require.NotEmpty(t, r.Points(t, "quorate.node.inbox"))
		stats := nodes[0].Stats()
		require.InDelta(t, stats.Rounds, r.Value(t, "quorate.membership.gossip.rounds", attribute.String("quorate.gossip.round", "repair")), 0)
		require.InDelta(t, stats.Pushes, r.Value(t, "quorate.membership.gossip.rounds", attribute.String("quorate.gossip.round", "push")), 0)
		require.NotZero(t, r.Value(t, "quorate.transport.io", attribute.String("quorate.lane", "control"), out))
	})
}

// A node that is cut off is marked, and loses its standing once; when it is back
// the marks are taken back. Its provider is called, and how long that takes is
// measured with what came of it.
func TestMetricsOfACut(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		slow := strange(func(ctx context.Context, _ downing.View) (downing.Decision, error) {
			select {
			case <-time.After(2 * time.Second):
			case <-ctx.Done():
			}
			return downing.Decision{}, errors.New("no idea")
		})
		nodes, readers := p.metered(3, membership.WithDowning(membership.Downing{Provider: slow}))
		<-time.After(5 * time.Second)
		for i := range 2 {
			p.network.Cut(address(i+1), address(3))
		}
		p.await(nodes[0], "node 3 is unreachable", func(v membership.View) bool { return len(v.State.Unreachable()) == 1 })
		require.InDelta(t, 1, readers[0].Value(t, "quorate.membership.unreachable"), 0)
		marked, cleared := attribute.String("quorate.verdict", "unreachable"), attribute.String("quorate.verdict", "reachable")
		<-time.After(12 * time.Second)
		marks := readers[0].Value(t, "quorate.membership.marks", marked) + readers[1].Value(t, "quorate.membership.marks", marked)
		require.InDelta(t, 2, marks, 1, "both, unless one heard of it from the other first")
		require.InDelta(t, 2, readers[2].Value(t, "quorate.membership.marks", marked), 0)
		require.EqualValues(t, 2, nodes[2].Stats().Marks)
		require.Greater(t, readers[2].Value(t, "quorate.membership.phi"), 8.0)
		require.Zero(t, readers[2].Value(t, "quorate.membership.standing"))
		require.InDelta(t, 1, readers[2].Value(t, "quorate.membership.standing.lost"), 0)
		failed := []attribute.KeyValue{attribute.String("quorate.policy", "downing"), attribute.String("error.type", "failed")}
		calls := 0.0
		for _, r := range readers {
			calls += r.Value(t, "quorate.strategy.call.duration", failed...)
			for _, point := range r.Points(t, "quorate.strategy.call.duration") {
				require.InDelta(t, 2*point.Value, point.Sum, .1, "two seconds each")
			}
		}
		require.NotZero(t, calls)
		p.network.HealAll()
		p.await(nodes[2], "all others are reachable", func(v membership.View) bool {
			return !slices.ContainsFunc(v.State.Unreachable(), func(n gossip.NodeID) bool { return n != v.Self })
		})
		<-time.After(5 * time.Second)
		require.InDelta(t, 2, readers[2].Value(t, "quorate.membership.marks", cleared), 0)
		require.EqualValues(t, 2, nodes[2].Stats().Clears)
		require.InDelta(t, 1, readers[2].Value(t, "quorate.membership.standing"), 0)
		require.InDelta(t, 1, readers[2].Value(t, "quorate.membership.standing.lost"), 0, "the loss is counted once")
	})
}

// A node that leaves in order gives its standing up and does not lose it.
func TestLeavingIsNoLossOfStanding(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes, readers := p.metered(3)
		<-time.After(5 * time.Second)
		require.NoError(t, nodes[2].LeaveMember(t.Context(), at(3)))
		lost := 0.0
		for held := true; held; held = nodes[2].Standing().Held() {
			lost = max(lost, readers[2].Value(t, "quorate.membership.standing.lost"))
			<-time.After(10 * time.Millisecond)
		}
		require.Zero(t, max(lost, readers[2].Value(t, "quorate.membership.standing.lost")))
		require.NoError(t, p.ended(nodes[2]))
		require.Empty(t, readers[2].Points(t, "quorate.membership.members"), "a node that has ended is not observed")
	})
}

// fickle is a transport whose lanes take nothing once it is told so.
type fickle struct {
	transport.Transport

	shut chan struct{}
}

// Lane returns a lane that looks at shut first.
func (f fickle) Lane(to gossip.NodeID, k transport.LaneClass) transport.Lane {
	return fickleLane{f.Transport.Lane(to, k), f.shut}
}

type fickleLane struct {
	transport.Lane

	shut chan struct{}
}

// Append refuses once the transport is shut.
func (l fickleLane) Append(s transport.Service, encode func([]byte) []byte) error {
	select {
	case <-l.shut:
		return transport.ErrFull
	default:
		return l.Lane.Append(s, encode)
	}
}

// Messages that are refused, cannot be decoded, or are not sent are counted.
func TestMetricsOfWhatIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		shut := make(chan struct{})
		nodes, readers := p.metered(2, membership.WithTransport(func(id transport.Identity, cfg transport.Config, notices func(transport.Notice)) (transport.Transport, error) {
			inner, err := memory.New(p.network, id, cfg, memory.WithNotices(notices))
			return fickle{inner, shut}, err
		}))
		lane := nodes[1].Transport().Lane(nodes[0].Self(), machine.LaneControl)
		require.NoError(t, lane.Append(protocol.Service, func(dst []byte) []byte { return append(dst, 0xff) }))
		require.NoError(t, lane.Append(protocol.Service, func(dst []byte) []byte {
			out, err := wire.Codec{}.Append(dst, protocol.HeartbeatReply{Sequence: 999})
			require.NoError(t, err)
			return out
		}))
		<-time.After(time.Second)
		require.InDelta(t, 1, readers[0].Value(t, "quorate.node.messages.undecodable"), 0)
		require.InDelta(t, 1, readers[0].Value(t, "quorate.membership.refused", attribute.String("error.type", "unsolicited")), 0)
		require.Zero(t, readers[0].Value(t, "quorate.node.messages.unsent"))
		before := readers[0].Value(t, "quorate.node.messages", attribute.String("network.io.direction", "transmit"))
		close(shut)
		<-time.After(3 * time.Second)
		require.NotZero(t, readers[0].Value(t, "quorate.node.messages.unsent"))
		require.InDelta(t, before, readers[0].Value(t, "quorate.node.messages", attribute.String("network.io.direction", "transmit")), 0,
			"what no lane took was not sent")
	})
}

// stubborn is a machine that calls its strategy three times for each input, and
// publishes that it did.
type stubborn struct{ calls machine.CallID }

// Step calls.
func (s *stubborn) Step(_ machine.Now, in machine.Input, out *machine.Outbox) {
	if in != "go" {
		return
	}
	for range 3 {
		s.calls++
		out.Add(machine.Call{ID: s.calls, Port: "stubborn", Request: 1, Limit: time.Second})
	}
	out.Publish("called")
}

// A strategy that does not return, and an inbox that is full because a component
// holds the driver up, show; what the machine has counted shows then as before.
func TestMetricsOfAStrategyAndAComponentThatDoNotReturn(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes, readers := p.metered(1)
		r := readers[0]
		never, hold := make(chan struct{}), make(chan struct{})
		handle, err := nodes[0].Attach(membership.Attachment{
			Component: machine.Component{Name: "stubborn", Machine: new(stubborn)},
			Call:      func(context.Context, machine.Call) (any, error) { <-never; return 1, nil },
			Published: func(any) { <-hold },
		})
		require.NoError(t, err)
		require.NoError(t, handle.Post("go"))
		<-time.After(5 * time.Second)
		require.InDelta(t, 1, r.Value(t, "quorate.strategy.calls.abandoned"), 0)
		require.GreaterOrEqual(t, r.Value(t, "quorate.strategy.calls.busy"), 1.0)
		for err = nil; err == nil; {
			err = handle.Post("waits")
		}
		require.ErrorIs(t, err, machine.ErrFull)
		require.GreaterOrEqual(t, r.Value(t, "quorate.node.inbox.refused"), 1.0)
		require.InDelta(t, machine.InboxDefault, r.Value(t, "quorate.node.inbox"), 0)
		require.NotEmpty(t, r.Points(t, "quorate.membership.gossip.rounds"), "what was counted is known")
		close(hold)
		close(never)
		<-time.After(time.Second)
		require.InDelta(t, 1, r.Value(t, "quorate.strategy.call.duration", attribute.String("quorate.policy", "stubborn")), 0)
	})
}

// refusing is a provider whose meters register no callback.
type refusing struct{ noop.MeterProvider }

type refusingMeter struct{ noop.Meter }

// Meter returns a meter that refuses.
func (refusing) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

// RegisterCallback refuses.
func (refusingMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, errors.New("no more callbacks")
}

// A provider that is at fault is logged, and the node runs.
func TestABadProviderDoesNotHoldTheNodeUp(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		n := p.start(config(1), membership.WithMeterProvider(refusing{}))
		require.NoError(t, n.AwaitUp(t.Context()))
		require.Contains(t, p.log.String(), "some metrics are missing")
		require.Contains(t, p.log.String(), "no more callbacks")
	})
}
