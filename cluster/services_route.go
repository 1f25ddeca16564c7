// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/ddata/services/registry"
	"github.com/quorate/quorate/management"
)

// The routes about services and topics. Both are answered from the replicated data, also by
// a node of which the program uses neither:
//
//	GET  /v1/registry                 [ServiceNames]; prefix, limit
//	GET  /v1/registry/explain?name=   [registry.Explanation]
//	GET  /v1/topics                   [TopicNames]; prefix, limit
//	GET  /v1/topics/explain?topic=    [pubsub.Explanation]

// ServiceNames lists names of services that a node holds.
type ServiceNames struct {
	Self  string   `json:"self"`  // The node that answers.
	Names []string `json:"names"` // Sorted, those included under which nothing is registered any more.
	More  bool     `json:"more"`  // The node holds others that are not listed.
}

// TopicNames lists topics that a node holds.
type TopicNames struct {
	Self   string   `json:"self"`   // The node that answers.
	Topics []string `json:"topics"` // Sorted, those included that have no subscriber any more.
	More   bool     `json:"more"`   // The node holds others that are not listed.
}

// named returns the names behind a prefix of keys.
func (d *dataRoutes) named(ctx context.Context, r management.Request, prefix string) (names []string, more bool, err error) {
	limit, err := r.QueryInt("limit", 1, maxKeys, keysShown)
	if err != nil {
		return nil, false, err
	}
	keys, more, err := d.data.Keys(ctx, prefix+r.Query("prefix"), limit)
	if err != nil {
		return nil, false, dataError(err)
	}
	names = make([]string, 0, len(keys))
	for _, key := range keys {
		names = append(names, key[len(prefix):])
	}
	return names, more, nil
}

// serviceError gives an error about services or topics its status.
func serviceError(err error) error {
	if errors.Is(err, registry.ErrEntry) || errors.Is(err, pubsub.ErrName) {
		text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "registry: "), "pubsub: ")
		return &management.Error{Status: http.StatusBadRequest, Text: text}
	}
	return dataError(err)
}

// registryRoutes answers the routes about services.
type registryRoutes struct{ n *Node }

// all returns the routes.
func (s registryRoutes) all() []management.Route {
	return []management.Route{
		{Path: "/v1/registry", Summary: "Names of services", Result: ServiceNames{}, Query: []string{"prefix", "limit"}, Answer: s.names},
		{Path: "/v1/registry/explain", Summary: "What is registered under a name", Result: registry.Explanation{}, Query: []string{"name"}, Answer: s.explain},
	}
}

func (s registryRoutes) names(ctx context.Context, r management.Request) (any, error) {
	names, more, err := s.n.shown.named(ctx, r, registry.Prefix)
	return ServiceNames{Self: s.n.shown.self, Names: names, More: more}, err
}

// explain asks the registry if the program uses it, since it knows its subscribers.
func (s registryRoutes) explain(ctx context.Context, r management.Request) (any, error) {
	if of := s.n.registry.peek(); of != nil {
		e, err := of.Explain(ctx, r.Query("name"))
		return e, serviceError(err)
	}
	e, err := registry.Explain(ctx, s.n.data, r.Query("name"))
	return e, serviceError(err)
}

// topicRoutes answers the routes about topics.
type topicRoutes struct{ n *Node }

// all returns the routes.
func (s topicRoutes) all() []management.Route {
	return []management.Route{
		{Path: "/v1/topics", Summary: "Names of topics", Result: TopicNames{}, Query: []string{"prefix", "limit"}, Answer: s.names},
		{Path: "/v1/topics/explain", Summary: "Where the messages of a topic go", Result: pubsub.Explanation{}, Query: []string{"topic"}, Answer: s.explain},
	}
}

func (s topicRoutes) names(ctx context.Context, r management.Request) (any, error) {
	names, more, err := s.n.shown.named(ctx, r, pubsub.Prefix)
	return TopicNames{Self: s.n.shown.self, Topics: names, More: more}, err
}

// explain asks the node's part in topics if the program uses it, since it knows the
// subscribers here.
func (s topicRoutes) explain(ctx context.Context, r management.Request) (any, error) {
	if of := s.n.topics.peek(); of != nil {
		e, err := of.Explain(ctx, r.Query("topic"))
		return e, serviceError(err)
	}
	e, err := pubsub.Explain(ctx, s.n.data, r.Query("topic"))
	return e, serviceError(err)
}
