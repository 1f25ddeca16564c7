// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Explainer knows where entities live and why. Its methods are called concurrently and
// end with their context. They are called only for kinds and shards that Kinds has named.
type Explainer interface {
	// Kinds returns the kinds that run on this node.
	Kinds(ctx context.Context) ([]Kind, error)

	// Explain says where an entity lives. The entity need not exist: every id has a
	// place.
	Explain(ctx context.Context, kind, entity string) (Explanation, error)

	// ExplainShard says where a shard lives.
	ExplainShard(ctx context.Context, kind string, shard int) (Explanation, error)
}

// KindList lists the kinds of entities that run on a node.
type KindList struct {
	Self  string `json:"self"` // The node that answers.
	Kinds []Kind `json:"kinds"`
}

// Kind is a kind of entity, as one node knows it.
type Kind struct {
	Name   string `json:"name"`
	Shards int    `json:"shards"` // Number of shards in the cluster.
	Hosted int    `json:"hosted"` // Number of shards that this node hosts.
	Proxy  bool   `json:"proxy"`  // This node never hosts shards of this kind.
	// Coordinator is the node that decides where shards live, as far as this one knows. NoCoordinator says why there is
	// none. If neither is set, it is not known.
	Coordinator   string `json:"coordinator,omitempty"`
	NoCoordinator string `json:"noCoordinator,omitempty"`
	Term          string `json:"term,omitempty"` // Term of the coordinator; none while this node has not heard from it.
}

// Explanation says where a shard lives, and the entities in it, and why.
type Explanation struct {
	Kind   string `json:"kind"`
	Entity string `json:"entity,omitempty"` // The entity, if one was asked for.
	Shard  int    `json:"shard"`

	// Self is the node that answers from what it knows; Complete says that it is the
	// coordinator, which knows everything.
	Self     string `json:"self"`
	Complete bool   `json:"complete"`

	Home        string    `json:"home,omitempty"`  // The node that hosts the shard; none while it has no home.
	State       string    `json:"state,omitempty"` // What happens to the shard: "serving", "stopping", "no home", ...
	Epoch       string    `json:"epoch,omitempty"` // Number of the home, which only grows.
	Since       time.Time `json:"since,omitzero"`
	Coordinator string    `json:"coordinator,omitempty"`

	Decision string   `json:"decision,omitempty"` // The decision that gave the shard this home.
	Reason   string   `json:"reason,omitempty"`   // The reason of the decision.
	Pending  []string `json:"pending,omitempty"`  // What is waited for, in words.
	History  []Move   `json:"history,omitempty"`  // Last moves, oldest first.
}

// Move is one change of the home of a shard.
type Move struct {
	At     time.Time `json:"at,omitzero"`
	From   string    `json:"from,omitempty"` // None if the shard had no home.
	To     string    `json:"to,omitempty"`   // None if the shard lost its home.
	Epoch  string    `json:"epoch,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// Explanations returns the routes of the kinds, shards and entities. Self is
// the text form of the node's id.
func Explanations(self string, explainer Explainer) []Route {
	return []Route{
		{Path: "/v1/kinds", Summary: "The kinds of entities that run on the node", Result: KindList{}, Answer: func(ctx context.Context, _ Request) (any, error) {
			kinds, err := explainer.Kinds(ctx)
			if err != nil {
				return nil, err
			}
			return KindList{Self: self, Kinds: append([]Kind{}, kinds...)}, nil
		}},
		{Path: "/v1/kinds/{kind}/shards/{shard}", Summary: "Where a shard lives, and why", Result: Explanation{}, Answer: func(ctx context.Context, r Request) (any, error) {
			kind, err := findKind(ctx, explainer, r.Path("kind"))
			if err != nil {
				return nil, err
			}
			shard, err := strconv.Atoi(r.Path("shard"))
			if err != nil {
				return nil, refuse(http.StatusBadRequest, "shard %q is not a number", clip(r.Path("shard")))
			}
			if shard < 0 || shard >= kind.Shards {
				return nil, refuse(http.StatusNotFound, "kind %q has no shard %d: they are 0 to %d", kind.Name, shard, kind.Shards-1)
			}
			return explainer.ExplainShard(ctx, kind.Name, shard)
		}},
		{Path: "/v1/kinds/{kind}/entities/{entity}", Summary: "Where an entity lives, and why", Result: Explanation{}, Answer: func(ctx context.Context, r Request) (any, error) {
			kind, err := findKind(ctx, explainer, r.Path("kind"))
			if err != nil {
				return nil, err
			}
			entity := r.Path("entity")
			if entity == "" || len(entity) > maxEntityBytes || !utf8.ValidString(entity) {
				return nil, refuse(http.StatusBadRequest, "an entity's id has 1 to %d bytes of valid UTF-8", maxEntityBytes)
			}
			return explainer.Explain(ctx, kind.Name, entity)
		}},
	}
}

// maxEntityBytes is the longest id that an entity can have.
const maxEntityBytes = 512

// findKind returns the kind with a name, or an error that lists the kinds.
func findKind(ctx context.Context, explainer Explainer, name string) (Kind, error) {
	kinds, err := explainer.Kinds(ctx)
	if err != nil {
		return Kind{}, err
	}
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	if len(names) == 0 {
		return Kind{}, refuse(http.StatusNotFound, "kind %q does not run on this node: no kind does", clip(name))
	}
	slices.Sort(names)
	return Kind{}, refuse(http.StatusNotFound, "kind %q does not run on this node; there are %s", clip(name), strings.Join(names, ", "))
}
