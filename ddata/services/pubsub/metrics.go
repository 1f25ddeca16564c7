// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/quorate/quorate/machine/meter"
)

// observe registers the metrics of a PubSub until stop is called.
func (p *PubSub) observe() (stop func()) {
	m := meter.New(p.meters, "github.com/quorate/quorate/ddata/services/pubsub", p.self)
	return meter.ObserveOrLog(m, metricsTable(), func(context.Context) Stats { return p.Stats() }, p.log)
}

// attrReason says why messages were dropped.
const attrReason = attribute.Key("quorate.pubsub.reason")

// metricsTable declares what is measured, each metric by a row that reads it.
func metricsTable() []meter.Row[Stats] {
	return []meter.Row[Stats]{
		meter.UpDown("quorate.pubsub.subscribers", "{subscriber}", "Subscriptions to topics on this node.",
			func(s Stats, observe meter.Observer) { observe(int64(s.Subscribers)) }),
		meter.UpDown("quorate.pubsub.messages.waiting", "{message}", "Messages that wait for subscribers on this node.",
			func(s Stats, observe meter.Observer) { observe(int64(s.Waiting)) }),
		meter.Gauge("quorate.pubsub.topics", "{topic}", "Topics that this node publishes to or has subscribed to.",
			func(s Stats, observe meter.Observer) { observe(int64(s.Topics)) }),
		meter.Total("quorate.pubsub.messages.published", "{message}", "Messages that this node has published.",
			func(s Stats) uint64 { return s.Published }),
		meter.Total("quorate.pubsub.messages.sent", "{message}", "Messages that connections to other nodes have taken.",
			func(s Stats) uint64 { return s.Sent }),
		meter.Total("quorate.pubsub.messages.received", "{message}", "Messages of other nodes.",
			func(s Stats) uint64 { return s.Received }),
		meter.Total("quorate.pubsub.messages.unheard", "{message}", "Messages for which this node knew no subscriber.",
			func(s Stats) uint64 { return s.Unheard }),
		meter.Total("quorate.pubsub.messages.malformed", "{message}", "Frames of other nodes that meant nothing.",
			func(s Stats) uint64 { return s.Malformed }),
		meter.Total("quorate.pubsub.messages.undecoded", "{message}", "Messages that the codec of a subscriber has not decoded.",
			func(s Stats) uint64 { return s.Undecoded }),
		meter.Counter("quorate.pubsub.messages.dropped", "{message}", "Messages that were dropped.",
			func(s Stats, observe meter.Observer) {
				for why := range lossReasons {
					observe(int64(s.dropped[why]), attrReason.String(why.String()))
				}
			}),
	}
}

// Stats are numbers of a [PubSub]. Those from Published on only grow, from 0 when it was
// made.
type Stats struct {
	Subscribers int // Subscriptions on this node.
	Waiting     int // Messages that wait for them.
	Topics      int // Topics that this node publishes to or has subscribed to.

	Published uint64 // Messages that this node has published.
	Sent      uint64 // Messages that connections to other nodes have taken.
	Received  uint64 // Messages of other nodes.
	Unheard   uint64 // Messages, published or received, for which this node knew no subscriber.
	Malformed uint64 // Frames of other nodes that meant nothing.
	Undecoded uint64 // Messages that the codec of a subscriber has not decoded.

	ConnectionFull uint64 // Messages dropped since a connection was full.
	NodeGone       uint64 // Messages dropped since a node was gone before they were sent.
	SubscriberFull uint64 // Messages dropped since a subscriber had no room.

	dropped [lossReasons]uint64
}

// Stats returns the numbers.
func (p *PubSub) Stats() Stats {
	c := &p.counters
	s := Stats{
		Published: c.published.Load(), Sent: c.sent.Load(), Received: c.received.Load(), Unheard: c.unheard.Load(),
		Malformed: c.malformed.Load(), Undecoded: c.undecoded.Load(), dropped: p.losses.counts(),
	}
	p.each(func(t *topicState) {
		s.Topics++
		for _, b := range t.local.Load().all() {
			_, waiting := b.losses()
			s.Subscribers++
			s.Waiting += waiting
		}
	})
	s.ConnectionFull, s.NodeGone, s.SubscriberFull = s.dropped[lossLane], s.dropped[lossNode], s.dropped[lossSubscriber]
	return s
}
