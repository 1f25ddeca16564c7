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
//	GET  /v1/kinds/{kind}/resharding    [KindReshard]
//	     /v1/kinds/{kind}/reshard       [KindReshard], operation "reshard"; shards

// The operations about what nodes host, for [management.OperatorHeader].
const (
	DrainOperation   = "drain"
	UndrainOperation = "undrain"

	MoveShardOperation = "move-shard"

	ReshardOperation = "reshard"
)

// How many seconds a node waits until it hosts nothing before it says what it still hosts, and how long
// the answer may take.
const (
	drainWait    = 30
	maxDrainWait = 60
	drainTimeout = 70 * time.Second
)

// How many entities a list has.
const (
	entitiesShown = 100
	maxEntities   = 10_000
)

// ShardList lists the shards of a kind as one node knows them.
type ShardList struct {
	Self   string               `json:"self"` // The node that answers.
	Kind   string               `json:"kind"`
	Shards []sharding.ShardInfo `json:"shards"` // By number.

	// Locations are the addresses of shards that should live elsewhere, if the strategy of the node
	// follows locations; LocationsUnread says why they are not known, if they are not.
	Locations       map[int]string `json:"locations,omitempty"`
	LocationsUnread string         `json:"locationsUnread,omitempty"`
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

// KindReshard says how many shards a kind has, and how far a change of that is.
type KindReshard struct {
	Self   string `json:"self"` // The node that answers, as far as it knows.
	Kind   string `json:"kind"`
	Shards int    `json:"shards"` // When the change is over, if one is under way.

	Resharding *sharding.Resharding `json:"resharding,omitempty"`  // Nil: no change is under way.
	TakingOver bool                 `json:"taking_over,omitempty"` // As [sharding.KindInfo.TakingOver].
}

// hostRoutes answers the routes about what a node hosts.
type hostRoutes struct{ n *Node }

// all returns the routes.
func (h hostRoutes) all() []management.Route {
	return []management.Route{
		{Path: "/v1/kinds/{kind}/shards", Summary: "The shards of a kind, as the node knows them", Result: ShardList{}, Answer: h.shards},
		{Path: "/v1/kinds/{kind}/entities", Summary: "The entities of a kind that live on the node", Result: EntityList{}, Query: []string{"limit"}, Answer: h.entities},
		{Path: "/v1/drain", Summary: "Whether the node is drained, and what it hosts", Result: Draining{}, Answer: func(context.Context, management.Request) (any, error) { return h.state(), nil }},
		{Path: "/v1/drain/begin", Summary: "Have the node host nothing", Result: Draining{}, Query: []string{"wait"}, Operation: DrainOperation, Authorized: true, Limit: drainTimeout, Answer: h.drain},
		{Path: "/v1/drain/end", Summary: "Have the node host again", Result: Draining{}, Operation: UndrainOperation, Authorized: true, Answer: h.undrain},
		{Path: "/v1/kinds/{kind}/resharding", Summary: "How many shards a kind has, and how far a change of that is", Result: KindReshard{}, Answer: func(_ context.Context, r management.Request) (any, error) { return h.resharding(r.Path("kind")) }},
		{Path: "/v1/kinds/{kind}/reshard", Summary: "Change how many shards a kind has", Result: KindReshard{}, Query: []string{"shards"}, Operation: ReshardOperation, Authorized: true, Answer: h.reshard},
		{Path: "/v1/kinds/{kind}/shards/{shard}/move", Summary: "Have a shard move to a node", Result: ShardMove{}, Query: []string{"to"}, Operation: MoveShardOperation, Authorized: true, Answer: h.move},
	}
}

func (h hostRoutes) shards(ctx context.Context, r management.Request) (any, error) {
	kind := r.Path("kind")
	shards, err := h.n.sharding.Shards(kind)
	if err != nil {
		return nil, hostError(err)
	}
	list := ShardList{Self: h.n.Self().String(), Kind: kind, Shards: shards}
	locationRoutes(h).misplaced(ctx, &list)
	return list, nil
}

func (h hostRoutes) entities(_ context.Context, r management.Request) (any, error) {
	limit, err := r.QueryInt("limit", 1, maxEntities, entitiesShown)
	if err != nil {
		return nil, err
	}
	kind := r.Path("kind")
	entities, more, err := h.n.sharding.Entities(kind, limit)
	return EntityList{Self: h.n.Self().String(), Kind: kind, Entities: append([]sharding.EntityInfo{}, entities...), More: more}, hostError(err)
}

// drain has the node host nothing, and waits for that; not for long, since the answer says what is left.
func (h hostRoutes) drain(ctx context.Context, r management.Request) (any, error) {
	wait, err := r.QueryInt("wait", 1, maxDrainWait, drainWait)
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

// reshard has a kind have another number of shards.
func (h hostRoutes) reshard(ctx context.Context, r management.Request) (any, error) {
	shards, err := strconv.Atoi(r.Query("shards"))
	if err != nil {
		return nil, &management.Error{Status: http.StatusBadRequest, Text: fmt.Sprintf("shards %q is not a number", field.Clip(r.Query("shards")))}
	}
	if err := h.n.sharding.Reshard(ctx, r.Path("kind"), shards); err != nil {
		return nil, hostError(err)
	}
	answer, err := h.resharding(r.Path("kind"))
	if err != nil { // The kind does not run here: the coordinator knows it, and has begun.
		return KindReshard{Self: h.n.Self().String(), Kind: r.Path("kind"), Shards: shards}, nil //nolint:nilerr // The change has begun.
	}
	if answer.Resharding == nil && answer.Shards != shards { // This node will hear of it from the coordinator.
		answer.Resharding = &sharding.Resharding{From: answer.Shards, To: shards}
		answer.Shards = shards
	}
	return answer, nil
}

// resharding says how many shards a kind has.
func (h hostRoutes) resharding(kind string) (KindReshard, error) {
	for _, k := range h.n.sharding.Kinds() {
		if k.Name == kind {
			return KindReshard{Self: h.n.Self().String(), Kind: kind, Shards: k.Shards, Resharding: k.Resharding, TakingOver: k.TakingOver}, nil
		}
	}
	return KindReshard{}, &management.Error{Status: http.StatusNotFound, Text: fmt.Sprintf("kind %q does not run on this node", field.Clip(kind))}
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
	refused, unchanged := (*sharding.MoveError)(nil), (*sharding.ReshardError)(nil)
	switch {
	case errors.As(err, &refused), errors.As(err, &unchanged):
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
