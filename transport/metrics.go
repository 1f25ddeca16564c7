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

// Observe shows the counters of a node's transport as metrics of p, the global
// provider if p is nil, until stop is called. Nothing is done between two
// collections. The error says which instruments could not be made; the others
// work.
func Observe(p metric.MeterProvider, node gossip.NodeID, counters func() Counters) (stop func(), err error) {
	return meter.Observe(meter.New(p, "github.com/quorate/quorate/transport", node), append(trafficTable(), connectionTable()...),
		func(context.Context) *Counters {
			c := counters()
			return &c
		})
}

// trafficTable declares what is measured of messages and frames. Each row shows
// counters of [LaneCounters], by lane.
func trafficTable() []meter.Row[*Counters] {
	transmit, receive := meter.Direction.String(meter.Transmit), meter.Direction.String(meter.Receive)
	full, large := meter.Fault.String("full"), meter.Fault.String("too-large")
	return []meter.Row[*Counters]{
		meter.Counter("quorate.transport.messages", "{message}", "Messages accepted for a peer, or received from one and handed to a handler.",
			lanes(func(c *LaneCounters, observe meter.Observer) {
				observe(int64(c.Sent+c.Answers), transmit)
				observe(int64(c.Received), receive)
			})),
		meter.Counter("quorate.transport.frames", "{frame}", "Frames written, repetitions included, or handled.",
			lanes(func(c *LaneCounters, observe meter.Observer) {
				observe(int64(c.FramesSent), transmit)
				observe(int64(c.FramesReceived), receive)
			})),
		meter.Counter("quorate.transport.io", "By", "Bytes of the frames written or handled.",
			lanes(func(c *LaneCounters, observe meter.Observer) {
				observe(int64(c.BytesSent), transmit)
				observe(int64(c.BytesReceived), receive)
			})),
		meter.UpDown("quorate.transport.messages.waiting", "{message}", "Messages accepted and neither acknowledged nor lost.",
			lanes(func(c *LaneCounters, observe meter.Observer) { observe(int64(c.Waiting())) })),
		meter.Counter("quorate.transport.messages.lost", "{message}", "Messages accepted and not acknowledged when their session ended: their outcome is unknown.",
			lanes(func(c *LaneCounters, observe meter.Observer) { observe(int64(c.Lost)) })),
		meter.Counter("quorate.transport.messages.refused", "{message}", "Messages that a lane did not accept: its window was full, or the message larger than a frame.",
			lanes(func(c *LaneCounters, observe meter.Observer) {
				observe(int64(c.Full), full)
				observe(int64(c.TooLarge), large)
			})),
		meter.Counter("quorate.transport.messages.unhandled", "{message}", "Messages for a service that had no handler: received here, or sent to a peer.",
			lanes(func(c *LaneCounters, observe meter.Observer) {
				observe(int64(c.UnhandledHere), receive)
				observe(int64(c.UnhandledThere), transmit)
			})),
		meter.Counter("quorate.transport.frames.resent", "{frame}", "Frames written again after a connection broke.",
			lanes(func(c *LaneCounters, observe meter.Observer) { observe(int64(c.FramesResent)) })),
		meter.Counter("quorate.transport.frames.duplicate", "{frame}", "Frames dropped because they had been handled before.",
			lanes(func(c *LaneCounters, observe meter.Observer) { observe(int64(c.Duplicates)) })),
	}
}

// connectionTable declares what is measured of connections.
func connectionTable() []meter.Row[*Counters] {
	opened, accepted := attrSide.String("opened"), attrSide.String("accepted")
	return []meter.Row[*Counters]{
		meter.Counter("quorate.transport.connections", "{connection}", "Connections whose handshake was completed.",
			lanes(func(c *LaneCounters, observe meter.Observer) {
				observe(int64(c.Connects), opened)
				observe(int64(c.Accepts), accepted)
			})),
		meter.Counter("quorate.transport.connections.broken", "{connection}", "Connections opened here that broke or fell silent within a session; each is dialled anew.",
			lanes(func(c *LaneCounters, observe meter.Observer) { observe(int64(c.Breaks)) })),
		meter.Counter("quorate.transport.connections.refused", "{connection}", "Connections refused, by this node or to it.",
			func(c *Counters, observe meter.Observer) {
				showReasons(&c.RefusedInbound, observe, accepted)
				showReasons(&c.RefusedOutbound, observe, opened)
			}),
		meter.Total("quorate.transport.connections.fallback", "{connection}", "Connections for messages opened over gRPC since the other end takes nothing else, where transport.lane is tcp.",
			func(c *Counters) uint64 { return c.Fallbacks }),
		meter.Total("quorate.transport.accept.errors", "{error}", "Times that the system handed no connection out, mostly for want of file descriptors.",
			func(c *Counters) uint64 { return c.NotAccepted }),
	}
}

// lanes is a row that shows the same of each lane.
func lanes(of func(*LaneCounters, meter.Observer)) func(*Counters, meter.Observer) {
	return func(c *Counters, observe meter.Observer) {
		for lane := machine.LaneControl; int(lane) < LaneKinds; lane++ {
			of(&c.Lanes[lane], func(n int64, attrs ...attribute.KeyValue) {
				observe(n, append(attrs, attrLane.String(lane.String()))...)
			})
		}
	}
}

// showReasons shows how often connections were refused, by reason. Mostly there is no
// refusal at all: a series for each reason would be noise.
func showReasons(counts *[Reasons]uint64, observe meter.Observer, side attribute.KeyValue) {
	for reason := Reason(1); reason < reasonCount; reason++ {
		if n := counts[reason]; n > 0 {
			observe(int64(n), side, meter.Fault.String(strings.ReplaceAll(reason.String(), " ", "-")))
		}
	}
}
