// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/sharding"
)

// The routes about what all nodes host, answered from what those say that are heard of in time, and about how many
// shards of a kind are in use:
//
//	GET  /v1/kinds/{kind}/everywhere/shards     [sharding.ShardCensus]; wait
//	GET  /v1/kinds/{kind}/everywhere/entities   [sharding.EntityPage]; wait, limit, after
//	GET  /v1/kinds/{kind}/scale                 [KindScale]
//	     /v1/kinds/{kind}/rescale               [KindScale], operation "rescale"; count, wait

// RescaleOperation is the operation that changes how many shards of a kind are in use, such as the instances of a
// daemon, for [management.OperatorHeader].
const RescaleOperation = "rescale"

// How many seconds nodes, and a change of the number in use, are waited for, and how long the answer may take.
const (
	everywhereWait    = 3
	rescaleWait       = 30
	maxWait           = 60
	everywhereTimeout = 70 * time.Second
)

// How many entities a page has.
const (
	pageShown = 100
	maxPage   = 1000
)

// KindScale says how many shards of a kind are in use.
type KindScale struct {
	Self string `json:"self"` // The node that answers.
	Kind string `json:"kind"`
	sharding.ScaleState
}

// everywhereRoutes answers these routes.
type everywhereRoutes struct{ n *Node }

// all returns the routes.
func (e everywhereRoutes) all() []management.Route {
	const kind = "/v1/kinds/{kind}"
	return []management.Route{
		{Path: kind + "/everywhere/shards", Summary: "The shards of a kind on all nodes", Result: sharding.ShardCensus{}, Query: []string{"wait"}, Limit: everywhereTimeout, Answer: e.shards},
		{Path: kind + "/everywhere/entities", Summary: "The entities of a kind on all nodes", Result: sharding.EntityPage{}, Query: []string{"wait", "limit", "after"}, Limit: everywhereTimeout, Answer: e.entities},
		{Path: kind + "/scale", Summary: "How many shards of a kind are in use", Result: KindScale{}, Answer: e.scale},
		{Path: kind + "/rescale", Summary: "Change how many shards of a kind are in use", Result: KindScale{}, Query: []string{"count", "wait"}, Operation: RescaleOperation, Authorized: true, Limit: everywhereTimeout, Answer: e.rescale},
	}
}

// within returns a context for as long as a request waits.
func within(ctx context.Context, r management.Request, usual int) (context.Context, context.CancelFunc, error) {
	wait, err := r.QueryInt("wait", 1, maxWait, usual)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(wait)*time.Second)
	return ctx, cancel, nil
}

func (e everywhereRoutes) shards(ctx context.Context, r management.Request) (any, error) {
	ctx, cancel, err := within(ctx, r, everywhereWait)
	if err != nil {
		return nil, err
	}
	defer cancel()
	c, err := sharding.ShardsEverywhere(ctx, e.n, r.Path("kind"))
	return c, hostError(err)
}

func (e everywhereRoutes) entities(ctx context.Context, r management.Request) (any, error) {
	limit, err := r.QueryInt("limit", 1, maxPage, pageShown)
	if err != nil {
		return nil, err
	}
	ctx, cancel, err := within(ctx, r, everywhereWait)
	if err != nil {
		return nil, err
	}
	defer cancel()
	p, err := sharding.EntitiesEverywhere(ctx, e.n, r.Path("kind"), r.Query("after"), limit)
	return p, hostError(err)
}

func (e everywhereRoutes) scale(ctx context.Context, r management.Request) (any, error) {
	kind := r.Path("kind")
	state, err := sharding.ScaleOf(ctx, e.n, kind)
	return KindScale{e.n.Self().String(), kind, state}, scaleStatus(err)
}

// rescale changes the number. When the time is over the change may still be under way, and the answer says that.
func (e everywhereRoutes) rescale(ctx context.Context, r management.Request) (any, error) {
	count, err := r.QueryInt("count", 1, 1<<16, 0)
	if err != nil {
		return nil, err
	}
	patient, cancel, err := within(ctx, r, rescaleWait)
	if err != nil {
		return nil, err
	}
	defer cancel()
	kind := r.Path("kind")
	if _, err := sharding.Rescale(patient, e.n, kind, count); err != nil && !errors.Is(err, sharding.ErrScaleUnknown) {
		return nil, scaleStatus(err)
	}
	return e.scale(ctx, r)
}

// scaleStatus gives an error of a change its status.
func scaleStatus(err error) error {
	status := 0
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sharding.ErrScaleBusy), errors.Is(err, sharding.ErrScaleStuck):
		status = http.StatusConflict
	case errors.Is(err, sharding.ErrScaleUnknown):
		status = http.StatusServiceUnavailable
	case errors.As(err, new(*sharding.ScaleError)):
		status = http.StatusBadRequest
	default:
		return hostError(err)
	}
	return &management.Error{Status: status, Text: strings.TrimPrefix(err.Error(), "sharding: ")}
}
