// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strconv"

	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/sharding"
)

// The routes of Akka and Pekko Management about shards, beside those of [management.Akka]:
//
//	GET /cluster/shards          the names of kinds that run on this node
//	GET /cluster/shards/{name}   the shards of a kind that live on this node

// akkaKinds are the kinds of a node.
type akkaKinds struct {
	Kinds []string `json:"entityTypeKeys"`
}

// akkaShards are the shards of a kind on a node.
type akkaShards struct {
	Regions []akkaShard `json:"regions"`
}

// akkaShard is a shard on a node.
type akkaShard struct {
	ID       string `json:"shardId"`
	Entities int    `json:"numEntities"`
}

// akkaRoutes answers the routes about shards.
type akkaRoutes struct{ n *Node }

// all returns the routes.
func (a akkaRoutes) all() []management.Route {
	return []management.Route{
		{Path: "/cluster/shards", Summary: "The kinds of entities that run on the node, as of Akka Management", Result: akkaKinds{}, Answer: a.kinds},
		{Path: "/cluster/shards/{name}", Summary: "The shards of a kind that live on the node, as of Akka Management", Result: akkaShards{}, Answer: a.shards},
	}
}

func (a akkaRoutes) kinds(context.Context, management.Request) (any, error) {
	answer := akkaKinds{Kinds: []string{}}
	for _, k := range a.n.sharding.Kinds() {
		answer.Kinds = append(answer.Kinds, k.Name)
	}
	return answer, nil
}

func (a akkaRoutes) shards(_ context.Context, r management.Request) (any, error) {
	shards, err := a.n.sharding.Shards(r.Path("name"))
	if err != nil {
		return nil, hostError(err)
	}
	answer := akkaShards{Regions: []akkaShard{}}
	for _, s := range shards {
		if hostedHere(s) {
			answer.Regions = append(answer.Regions, akkaShard{strconv.Itoa(s.Shard), s.Entities})
		}
	}
	return answer, nil
}

// hostedHere reports whether a shard lives on the node that knows it so.
func hostedHere(s sharding.ShardInfo) bool { return s.State == "serving" || s.State == "stopping" }
