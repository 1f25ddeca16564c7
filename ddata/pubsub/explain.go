// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"context"
	"slices"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/gossip"
)

// Explanation says what a node knows of a topic, and where its messages go.
type Explanation struct {
	Topic string
	Data  ddata.Explanation // Where it is kept which nodes have subscribers.
	// Nodes are the other nodes to which each message goes.
	Nodes []gossip.NodeID
	// Groups are the nodes with receivers of each group, of which one gets each message.
	Groups map[string][]gossip.NodeID
	// Absent are nodes that the data names, and that get nothing: they are downed, or no
	// members.
	Absent []string
	// Subscribers are those on this node.
	Subscribers []ExplainedSubscriber
}

// ExplainedSubscriber is a subscription on this node.
type ExplainedSubscriber struct {
	Group   string // "" for none.
	Policy  Policy
	Room    int    // How many messages may wait.
	Waiting int    // How many wait.
	Dropped uint64 // How many were dropped.
}

// Explain says what this node knows of a topic. Errors: [ErrName]; those of [ddata.Get].
func (p *PubSub) Explain(ctx context.Context, topic string) (Explanation, error) {
	if err := checkName("topic", topic); err != nil {
		return Explanation{}, err
	}
	c, err := p.content(ctx, topic)
	if err != nil {
		return Explanation{}, err
	}
	data, err := p.data.Explain(ctx, Prefix+topic)
	if err != nil {
		return Explanation{}, wrap(topic, err)
	}
	r := p.routeOf(c)
	e := Explanation{Topic: topic, Data: data, Nodes: r.nodes, Groups: map[string][]gossip.NodeID{}}
	known := map[string]bool{p.self.String(): true}
	for _, node := range r.nodes {
		known[node.String()] = true
	}
	for _, g := range r.groups {
		e.Groups[g.name] = g.nodes
		for _, node := range g.nodes {
			known[node.String()] = true
		}
	}
	for _, node := range c.All() {
		if !known[node] {
			e.Absent = append(e.Absent, node)
		}
	}
	slices.Sort(e.Absent)
	e.Absent = slices.Compact(e.Absent)
	if t, ok := p.topics.Load(topic); ok {
		for _, b := range t.(*topicState).local.Load().all() {
			lost, waiting := b.losses()
			e.Subscribers = append(e.Subscribers, ExplainedSubscriber{b.group, b.policy, b.most, waiting, lost})
		}
	}
	return e, nil
}
