// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/management"
)

// The routes about replicated data:
//
//	GET  /v1/data                     [DataGroups]
//	GET  /v1/data/keys                [DataKeys]; prefix, limit
//	GET  /v1/data/keys/{key}          [ddata.Value]; consistency
//	GET  /v1/data/explain?key=        [ddata.Explanation]
//	POST /v1/data/accept-loss?group=  [DataGroups]
//
// A key is one segment of the path, escaped where it has slashes. Everything is bounded: what
// is listed, what is shown of a value, and how long other nodes are waited for.

// AcceptLossOperation is the value of [management.OperatorHeader] in a request to accept a
// loss of data.
const AcceptLossOperation = "accept-loss"

// DataGroups lists the groups of replicated keys of a node.
type DataGroups struct {
	Self   string        `json:"self"` // The node that answers.
	Groups []ddata.Group `json:"groups"`
}

// DataKeys lists keys that a node holds.
type DataKeys struct {
	Self string   `json:"self"` // The node that answers.
	Keys []string `json:"keys"` // Sorted, those included that were deleted or have expired lately.
	More bool     `json:"more"` // The node holds others that are not listed.
}

const (
	keysShown = 100    // How many keys are listed without a limit,
	maxKeys   = 10_000 // and with the highest one.
)

// dataRoutes answers the routes about replicated data.
type dataRoutes struct {
	data *ddata.Replicator
	self string
}

// all returns the routes.
func (d *dataRoutes) all() []management.Route {
	return []management.Route{
		{Path: "/v1/data", Summary: "The groups of replicated keys", Result: DataGroups{}, Answer: func(ctx context.Context, _ management.Request) (any, error) { return d.groups(ctx) }},
		{Path: "/v1/data/keys", Summary: "Names of replicated keys", Result: DataKeys{}, Query: []string{"prefix", "limit"}, Answer: d.keys},
		{Path: "/v1/data/keys/{key}", Summary: "The value of a replicated key", Result: ddata.Value{}, Query: []string{"consistency"}, Answer: d.value},
		{Path: "/v1/data/explain", Summary: "Where a replicated key lives, and why it is as it is", Result: ddata.Explanation{}, Query: []string{"key"}, Answer: func(ctx context.Context, r management.Request) (any, error) {
			e, err := d.data.Explain(ctx, r.Query("key"))
			return e, dataError(err)
		}},
		{Path: "/v1/data/accept-loss", Summary: "Have a group of keys go on although replicas are gone for good", Result: DataGroups{}, Query: []string{"group"}, Operation: AcceptLossOperation, Authorized: true, Answer: d.acceptLoss},
	}
}

func (d *dataRoutes) groups(ctx context.Context) (any, error) {
	groups, err := d.data.Groups(ctx)
	if err != nil {
		return nil, dataError(err)
	}
	return DataGroups{Self: d.self, Groups: groups}, nil
}

func (d *dataRoutes) keys(ctx context.Context, r management.Request) (any, error) {
	limit, err := r.QueryInt("limit", 1, maxKeys, keysShown)
	if err != nil {
		return nil, err
	}
	keys, more, err := d.data.Keys(ctx, r.Query("prefix"), limit)
	if err != nil {
		return nil, dataError(err)
	}
	return DataKeys{Self: d.self, Keys: append([]string{}, keys...), More: more}, nil
}

// value reads a key: what this node holds of it, or what a majority does.
func (d *dataRoutes) value(ctx context.Context, r management.Request) (any, error) {
	var c ddata.Consistency
	switch given := r.Query("consistency"); given {
	case "", "local":
	case "majority":
		c = ddata.Majority()
	default:
		return nil, &management.Error{Status: http.StatusBadRequest, Text: `consistency: "` + given[:min(len(given), 64)] + `" is neither local nor majority`}
	}
	v, err := d.data.Look(ctx, r.Path("key"), c)
	return v, dataError(err)
}

// acceptLoss has a group go on with what this node holds.
func (d *dataRoutes) acceptLoss(ctx context.Context, r management.Request) (any, error) {
	if err := d.data.AcceptLoss(ctx, r.Query("group")); err != nil {
		return nil, dataError(err)
	}
	return d.groups(ctx)
}

// dataError gives an error of replicated data its status.
func dataError(err error) error {
	status := 0
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ddata.ErrKey):
		status = http.StatusBadRequest
	case errors.Is(err, ddata.ErrAcceptLoss):
		status = http.StatusConflict
	case errors.Is(err, ddata.ErrClosed):
		status = http.StatusServiceUnavailable
	default:
		return err
	}
	return &management.Error{Status: status, Text: strings.TrimPrefix(err.Error(), "ddata: ")}
}
