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
	Topic string            `json:"topic"`
	Data  ddata.Explanation `json:"data"` // Where it is kept which nodes have subscribers.
	// Nodes are the other nodes to which each message goes.
	Nodes []string `json:"nodes,omitempty"`
	// Groups are the nodes with receivers of each group, of which one gets each message.
	Groups map[string][]string `json:"groups,omitempty"`
	// Absent are nodes that the data names, and that get nothing: they are downed, or no
	// members.
	Absent []string `json:"absent,omitempty"`
	// Subscribers are those on this node.
	Subscribers []ExplainedSubscriber `json:"subscribers,omitempty"`
}

// ExplainedSubscriber is a subscription on this node.
type ExplainedSubscriber struct {
	Group   string `json:"group,omitempty"` // "" for none.
	Policy  string `json:"policy"`          // As [Policy.String] names it.
	Room    int    `json:"room"`            // How many messages may wait.
	Waiting int    `json:"waiting"`         // How many wait.
	Dropped uint64 `json:"dropped"`         // How many were dropped.
}

// Explain says what this node knows of a topic. Errors: [ErrName]; those of [ddata.Get].
func (p *PubSub) Explain(ctx context.Context, topic string) (Explanation, error) {
	e, err := Explain(ctx, p.data, topic)
	if err != nil {
		return e, err
	}
	if t, ok := p.topics.Load(topic); ok {
		for _, b := range t.(*topicState).local.Load().all() {
			lost, waiting := b.losses()
			e.Subscribers = append(e.Subscribers, ExplainedSubscriber{b.group, b.policy.String(), b.max, waiting, lost})
		}
	}
	return e, nil
}

// Explain says what a node knows of a topic that need not have any part in topics: who would
// get what it published. Errors: [ErrName]; those of [ddata.Get].
func Explain(ctx context.Context, h ddata.Host, topic string) (Explanation, error) {
	if err := checkName("topic", topic); err != nil {
		return Explanation{}, err
	}
	data := h.Data()
	c, err := contentOf(ctx, data, topic)
	if err != nil {
		return Explanation{}, err
	}
	of, err := data.Explain(ctx, Prefix+topic)
	if err != nil {
		return Explanation{}, wrap(topic, err)
	}
	self := data.Node().Self()
	known := map[string]bool{self.String(): true}
	texts := func(nodes []gossip.NodeID) (all []string) {
		for _, node := range nodes {
			all, known[node.String()] = append(all, node.String()), true
		}
		return all
	}
	plain, groups := whoGets(data.Node().State(), self, c)
	e := Explanation{Topic: topic, Data: of, Nodes: texts(plain), Groups: map[string][]string{}}
	for _, g := range groups {
		e.Groups[g.name] = texts(g.nodes)
	}
	for _, node := range c.All() {
		if !known[node] {
			e.Absent = append(e.Absent, node)
		}
	}
	slices.Sort(e.Absent)
	e.Absent = slices.Compact(e.Absent)
	return e, nil
}
