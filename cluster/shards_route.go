// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/sharding"
)

// The routes about what this node hosts, answered from what it knows by itself, and the operations
// by which it is drained and hosts again:
//
//	GET  /v1/kinds/{kind}/shards     [ShardList]
//	GET  /v1/kinds/{kind}/entities   [EntityList]; limit
//	GET  /v1/drain                   [Draining]
//	     /v1/drain/begin             [Draining], operation "drain"; wait
//	     /v1/drain/end               [Draining], operation "undrain"
//	     /v1/kinds/{kind}/shards/{shard}/move   [ShardMove], operation "move-shard"; to

// The operations about what nodes host, for [management.OperatorHeader].
const (
	DrainOperation   = "drain"
	UndrainOperation = "undrain"

	MoveShardOperation = "move-shard"
)

// How many seconds a node waits until it hosts nothing before it says what it still hosts, and how long
// the answer may take.
const (
	drainWait     = 30
	drainWaitMost = 60
	drainLimit    = 70 * time.Second
)

// How many entities a list has.
const (
	entitiesShown = 100
	entitiesMost  = 10_000
)

// ShardList lists the shards of a kind as one node knows them.
type ShardList struct {
	Self   string               `json:"self"` // The node that answers.
	Kind   string               `json:"kind"`
	Shards []sharding.ShardInfo `json:"shards"` // By number.
}

// EntityList lists the entities of a kind that live on one node.
type EntityList struct {
	Self     string                `json:"self"` // The node that answers.
	Kind     string                `json:"kind"`
	Entities []sharding.EntityInfo `json:"entities"` // By shard, and in each the one first that came to life first.
	More     bool                  `json:"more"`     // There are others that are not listed.
}

// Draining says whether a node is drained, and what it still hosts.
type Draining struct {
	Self    string        `json:"self"`    // The node that answers.
	Drained bool          `json:"drained"` // It was told to host nothing.
	Hosts   []HostedCount `json:"hosts"`   // The kinds of which it hosts shards, by name.
}

// HostedCount says how many shards of a kind a node hosts.
type HostedCount struct {
	Kind   string `json:"kind"`
	Shards int    `json:"shards"`
}

// ShardMove says that the move of a shard has begun.
type ShardMove struct {
	Self  string `json:"self"` // The node that was asked.
	Kind  string `json:"kind"`
	Shard int    `json:"shard"`
	To    string `json:"to"` // The node as it was named.
}

// hostRoutes answers the routes about what a node hosts.
type hostRoutes struct{ n *Node }

// all returns the routes.
func (h hostRoutes) all() []management.Route {
	return []management.Route{
		{Path: "/v1/kinds/{kind}/shards", Answer: h.shards},
		{Path: "/v1/kinds/{kind}/entities", Query: []string{"limit"}, Answer: h.entities},
		{Path: "/v1/drain", Answer: func(context.Context, management.Request) (any, error) { return h.state(), nil }},
		{Path: "/v1/drain/begin", Query: []string{"wait"}, Operation: DrainOperation, Authorized: true, Limit: drainLimit, Answer: h.drain},
		{Path: "/v1/drain/end", Operation: UndrainOperation, Authorized: true, Answer: h.undrain},
		{Path: "/v1/kinds/{kind}/shards/{shard}/move", Query: []string{"to"}, Operation: MoveShardOperation, Authorized: true, Answer: h.move},
	}
}

func (h hostRoutes) shards(_ context.Context, r management.Request) (any, error) {
	kind := r.Path("kind")
	shards, err := h.n.sharding.Shards(kind)
	return ShardList{Self: h.n.Self().String(), Kind: kind, Shards: shards}, hostError(err)
}

func (h hostRoutes) entities(_ context.Context, r management.Request) (any, error) {
	limit, err := r.QueryInt("limit", 1, entitiesMost, entitiesShown)
	if err != nil {
		return nil, err
	}
	kind := r.Path("kind")
	entities, more, err := h.n.sharding.Entities(kind, limit)
	return EntityList{Self: h.n.Self().String(), Kind: kind, Entities: append([]sharding.EntityInfo{}, entities...), More: more}, hostError(err)
}

// drain has the node host nothing, and waits for that; not for long, since the answer says what is left.
func (h hostRoutes) drain(ctx context.Context, r management.Request) (any, error) {
	wait, err := r.QueryInt("wait", 1, drainWaitMost, drainWait)
	if err != nil {
		return nil, err
	}
	patient, cancel := context.WithTimeout(ctx, time.Duration(wait)*time.Second)
	defer cancel()
	err = h.n.sharding.Drain(patient)
	if err != nil && (!errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil) {
		return nil, hostError(err)
	}
	return h.state(), nil
}

func (h hostRoutes) undrain(ctx context.Context, _ management.Request) (any, error) {
	if err := h.n.sharding.Undrain(ctx); err != nil {
		return nil, hostError(err)
	}
	return h.state(), nil
}

// move has a shard move to a node.
func (h hostRoutes) move(ctx context.Context, r management.Request) (any, error) {
	shard, err := strconv.Atoi(r.Path("shard"))
	if err != nil {
		return nil, &management.Error{Status: http.StatusBadRequest, Text: fmt.Sprintf("shard %q is not a number", field.Clip(r.Path("shard")))}
	}
	m := ShardMove{Self: h.n.Self().String(), Kind: r.Path("kind"), Shard: shard, To: r.Query("to")}
	if err := h.n.sharding.Move(ctx, m.Kind, m.Shard, m.To); err != nil {
		return nil, hostError(err)
	}
	return m, nil
}

// state says whether the node is drained, and what it hosts.
func (h hostRoutes) state() Draining {
	d := Draining{Self: h.n.Self().String(), Drained: h.n.sharding.Drained(), Hosts: []HostedCount{}}
	for _, k := range h.n.sharding.Kinds() {
		if k.Hosted > 0 {
			d.Hosts = append(d.Hosts, HostedCount{k.Name, k.Hosted})
		}
	}
	return d
}

// hostError gives an error of sharding its status.
func hostError(err error) error {
	status := 0
	refused := (*sharding.MoveError)(nil)
	switch {
	case errors.As(err, &refused):
		status = http.StatusConflict
	case errors.Is(err, sharding.ErrInvalid):
		status = http.StatusNotFound
	case errors.Is(err, sharding.ErrUndrained):
		status = http.StatusConflict
	case errors.Is(err, sharding.ErrClosed):
		status = http.StatusServiceUnavailable
	default:
		return err
	}
	return &management.Error{Status: status, Text: strings.TrimPrefix(err.Error(), "sharding: ")}
}
