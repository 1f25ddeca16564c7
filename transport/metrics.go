// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/meter"
)

// The attributes of the transport's metrics.
const (
	attrLane = attribute.Key("quorate.lane") // "control", "message" or "bulk".
	attrSide = attribute.Key("quorate.side") // Who opened the connection: "opened" by this node, or "accepted".
)

// instruments are what [Observe] observes.
type instruments struct {
	counters func() Counters

	messages, frames, bytes                  metric.Int64ObservableCounter
	lost, refused, resent, doubled           metric.Int64ObservableCounter
	unhandled, connections, broken, rejected metric.Int64ObservableCounter
	unaccepted                               metric.Int64ObservableCounter
	waiting                                  metric.Int64ObservableUpDownCounter
}

// Observe shows the counters of a node's transport as metrics of p, the global
// provider if p is nil, until stop is called. Nothing is done between two
// collections. The error says which instruments could not be made; the others
// work.
func Observe(p metric.MeterProvider, node gossip.NodeID, counters func() Counters) (stop func(), err error) {
	m := meter.New(p, "github.com/quorate/quorate/transport", node)
	i := &instruments{
		counters: counters,
		messages: m.Counter("quorate.transport.messages", "{message}", "Messages accepted for a peer, or received from one and handed to a handler."),
		frames:   m.Counter("quorate.transport.frames", "{frame}", "Frames written, repetitions included, or handled."),
		bytes:    m.Counter("quorate.transport.io", "By", "Bytes of the frames written or handled."),
		waiting:  m.UpDown("quorate.transport.messages.waiting", "{message}", "Messages accepted and neither acknowledged nor lost."),
		lost:     m.Counter("quorate.transport.messages.lost", "{message}", "Messages accepted and not acknowledged when their session ended: their outcome is unknown."),
		refused:  m.Counter("quorate.transport.messages.refused", "{message}", "Messages that a lane did not accept: its window was full, or the message larger than a frame."),
		unhandled: m.Counter("quorate.transport.messages.unhandled", "{message}",
			"Messages for a service that had no handler: received here, or sent to a peer."),
		resent:      m.Counter("quorate.transport.frames.resent", "{frame}", "Frames written again after a connection broke."),
		doubled:     m.Counter("quorate.transport.frames.duplicate", "{frame}", "Frames dropped because they had been handled before."),
		connections: m.Counter("quorate.transport.connections", "{connection}", "Connections whose handshake was completed."),
		broken:      m.Counter("quorate.transport.connections.broken", "{connection}", "Connections opened here that broke or fell silent within a session; each is dialled anew."),
		rejected:    m.Counter("quorate.transport.connections.refused", "{connection}", "Connections refused, by this node or to it."),
		unaccepted:  m.Counter("quorate.transport.accept.errors", "{error}", "Times that the system handed no connection out, mostly for want of file descriptors."),
	}
	return m.Observe(i.observe)
}

// observe reads the counters once.
func (i *instruments) observe(_ context.Context, o metric.Observer) error {
	c := i.counters()
	o.ObserveInt64(i.unaccepted, int64(c.NotAccepted))
	for lane := range c.Lanes {
		if lane > 0 {
			i.lane(o, &c.Lanes[lane], attrLane.String(machine.Lane(lane).String()))
		}
	}
	for reason := Reason(1); reason < reasonCount; reason++ {
		for side, counts := range map[string][Reasons]uint64{"accepted": c.RefusedInbound, "opened": c.RefusedOutbound} {
			if n := counts[reason]; n > 0 { // Mostly there is none at all: a series for each would be noise.
				o.ObserveInt64(i.rejected, int64(n), metric.WithAttributes(attrSide.String(side), meter.Fault.String(strings.ReplaceAll(reason.String(), " ", "-"))))
			}
		}
	}
	return nil
}

// lane observes the counters of one lane.
func (i *instruments) lane(o metric.Observer, c *LaneCounters, lane attribute.KeyValue) {
	of := func(instrument metric.Int64Observable, n uint64, more ...attribute.KeyValue) {
		o.ObserveInt64(instrument, int64(n), metric.WithAttributes(append(more, lane)...))
	}
	transmit, receive := meter.Direction.String(meter.Transmit), meter.Direction.String(meter.Receive)
	of(i.messages, c.Sent, transmit)
	of(i.messages, c.Received, receive)
	of(i.frames, c.FramesSent, transmit)
	of(i.frames, c.FramesReceived, receive)
	of(i.bytes, c.BytesSent, transmit)
	of(i.bytes, c.BytesReceived, receive)
	of(i.waiting, c.Waiting())
	of(i.lost, c.Lost)
	of(i.refused, c.Full, meter.Fault.String("full"))
	of(i.refused, c.TooLarge, meter.Fault.String("too-large"))
	of(i.unhandled, c.UnhandledHere, receive)
	of(i.unhandled, c.UnhandledThere, transmit)
	of(i.resent, c.FramesResent)
	of(i.doubled, c.Duplicates)
	of(i.connections, c.Connects, attrSide.String("opened"))
	of(i.connections, c.Accepts, attrSide.String("accepted"))
	of(i.broken, c.Breaks)
}
