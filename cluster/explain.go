// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/sharding"
)

// explainer answers the HTTP interface from sharding, two modules that do not know each
// other, and from the map of locations.
type explainer struct{ node *Node }

var _ management.Explainer = explainer{}

// Kinds returns the kinds that run on this node.
func (e explainer) Kinds(context.Context) ([]management.Kind, error) {
	infos, coordinators := e.node.sharding.Kinds(), e.node.sharding.Coordinators()
	kinds := make([]management.Kind, 0, len(infos))
	for _, k := range infos {
		by := coordinators[k.Name]
		kinds = append(kinds, management.Kind{
			Name: k.Name, Shards: k.Shards, Hosted: k.Hosted, Proxy: k.Proxy,
			Coordinator: by.Node, NoCoordinator: by.Missing, Term: by.Term,
		})
	}
	return kinds, nil
}

// Explain says where an entity lives.
func (e explainer) Explain(ctx context.Context, kind, entity string) (management.Explanation, error) {
	x, err := e.node.sharding.Explain(ctx, kind, entity)
	return locationRoutes{e.node}.explain(ctx, explanation(x), err)
}

// ExplainShard says where a shard lives.
func (e explainer) ExplainShard(ctx context.Context, kind string, shard int) (management.Explanation, error) {
	x, err := e.node.sharding.ExplainShard(ctx, kind, shard)
	return locationRoutes{e.node}.explain(ctx, explanation(x), err)
}

func explanation(x sharding.Explanation) management.Explanation {
	m := management.Explanation{
		Kind: x.Kind, Entity: x.Entity, Shard: x.Shard, Self: x.Self, Complete: x.Complete,
		Home: x.Home, State: x.State, Epoch: x.Epoch, Since: x.Since, Coordinator: x.Coordinator,
		Decision: x.Decision, Pending: x.Pending,
	}
	for _, move := range x.Moves {
		reason := move.Outcome
		if move.Reason != "" {
			reason += ": " + move.Reason
		}
		m.History = append(m.History, management.Move{At: move.Ended, From: move.From, To: move.To, Reason: reason})
	}
	return m
}
