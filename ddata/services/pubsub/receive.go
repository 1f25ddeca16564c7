// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
)

// What comes from other nodes. It is taken on the goroutine of a connection that other
// traffic needs too, so that nothing here waits for a subscriber: one that has no room takes
// what is on its way, and the publishers are told to wait, to fail, or nothing.

// frameReader delivers the contents of one frame of another node.
type frameReader struct {
	p    *PubSub
	from gossip.NodeID
	t    *topicState // Of the last message; nil if nobody here has subscribed to it.
	name string      // The topic of the last message.
}

// receive takes a frame of a member.
func (p *PubSub) receive(from gossip.NodeID, frame []byte) {
	in := frameReader{p: p, from: from}
	if err := readFrame(frame, &in); err != nil {
		p.counters.malformed.Add(1)
		p.log.Warn("pubsub message dropped", "from", from.String(), "error", err)
	}
}

// message gives a message to the subscribers.
func (in *frameReader) message(m *message) {
	in.p.counters.received.Add(1)
	if in.name != m.topic {
		in.name, in.t = m.topic, nil
		if t, ok := in.p.topics.Load(m.topic); ok && !t.(*topicState).local.Load().empty() {
			in.t = t.(*topicState)
		}
	}
	if in.t == nil {
		in.p.counters.unheard.Add(1)
		return
	}
	lost, got, s := in.t.take(item{in.from, slices.Clone(m.data)}, m)
	if got == 0 {
		in.p.counters.unheard.Add(1)
	}
	if lost > 0 {
		in.p.losses.add(lossSubscriber, lost)
	}
	if s != open && in.t.pause(in.from, s, time.Now()) {
		in.p.peer(in.from).signal(in.t.name, s)
		in.p.resume(in.t) // There may be room again by now, and nobody who would say so.
	}
}

// signal handles a signal of a node about a topic. It is ignored when nobody here publishes to the topic.
func (in *frameReader) signal(topic string, s state) {
	if _, ok := in.p.topics.Load(topic); ok {
		in.p.peer(in.from).handleSignal(topic, s)
	}
}

// resume tells the nodes that were told otherwise that there is room in a topic, if there is.
func (p *PubSub) resume(t *topicState) {
	for _, node := range t.resumed() {
		p.peer(node).signal(t.name, open)
	}
}
