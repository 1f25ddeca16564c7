// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package allocationpolicy is the policy that decides where shards live.
//
// The contract leaves out of a request the reasons of moves in flight. Requests share
// strings and role lists with the messages they came from, and the other way round;
// neither is ever modified.
//
// A [Strategy] owns nothing: the owner of the connection supervises and closes it. It may
// be called from any goroutine, several at a time. All functions are pure.
package allocationpolicy

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/contract"
	"github.com/quorate/quorate/plugins/internal/server"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Contract describes the policy.
func Contract() contract.Of[allocation.Strategy] {
	return contract.Of[allocation.Strategy]{
		Name:   plugins.Allocation,
		Client: func(t client.Target) allocation.Strategy { return New(t) },
		Register: func(r grpc.ServiceRegistrar, s *server.Server) {
			pluginv1.RegisterAllocationServer(r, &service{server: s})
		},
		Class: func(s allocation.Strategy) plugins.Class { return plugins.Class{Pure: allocation.ClassOf(s).Pure} },
		Try:   try,
	}
}

// Strategy is an allocation strategy in another process.
type Strategy struct {
	target client.Target
	calls  pluginv1.AllocationClient
}

var (
	_ allocation.Strategy = (*Strategy)(nil)
	_ allocation.Classed  = (*Strategy)(nil)
)

// New returns the strategy behind a connection to a plugin.
func New(t client.Target) *Strategy {
	return &Strategy{target: t, calls: pluginv1.NewAllocationClient(t.Conn)}
}

// Class returns what the plugin declared.
func (s *Strategy) Class() allocation.Class { return allocation.Class{Pure: s.target.Class.Pure} }

// Allocate asks the plugin, and checks the placements.
func (s *Strategy) Allocate(ctx context.Context, r allocation.AllocateRequest) (allocation.AllocateResult, error) {
	return client.Ask(ctx, &s.target, "allocate",
		func() (*pluginv1.AllocateRequest, error) { return AllocateToProto(&r), nil },
		s.calls.Allocate,
		func(a *pluginv1.AllocateResponse) (allocation.AllocateResult, error) {
			res, err := AllocateResultFromProto(&r, a)
			if err == nil {
				err = allocation.CheckAllocate(&r, &res)
			}
			return res, err
		})
}

// Rebalance asks the plugin, and checks the moves.
func (s *Strategy) Rebalance(ctx context.Context, r allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	return client.Ask(ctx, &s.target, "rebalance",
		func() (*pluginv1.RebalanceRequest, error) { return RebalanceToProto(&r), nil },
		s.calls.Rebalance,
		func(a *pluginv1.RebalanceResponse) (allocation.RebalanceResult, error) {
			res, err := RebalanceResultFromProto(&r, a)
			if err == nil {
				err = allocation.CheckRebalance(&r, &res)
			}
			return res, err
		})
}

// service serves the calls of an allocation strategy.
type service struct {
	pluginv1.UnimplementedAllocationServer
	server *server.Server
}

// Allocate asks the strategy for homes.
func (s *service) Allocate(ctx context.Context, r *pluginv1.AllocateRequest) (*pluginv1.AllocateResponse, error) {
	return server.Answer(ctx, s.server, "allocate",
		func() (allocation.AllocateRequest, error) { return AllocateFromProto(r) },
		allocation.Strategy.Allocate,
		AllocateResultToProto)
}

// Rebalance asks the strategy for moves.
func (s *service) Rebalance(ctx context.Context, r *pluginv1.RebalanceRequest) (*pluginv1.RebalanceResponse, error) {
	return server.Answer(ctx, s.server, "rebalance",
		func() (allocation.RebalanceRequest, error) { return RebalanceFromProto(r) },
		allocation.Strategy.Rebalance,
		RebalanceResultToProto)
}

// try has a strategy place four shards without a home on two regions in two zones.
func try(ctx context.Context, s allocation.Strategy) (string, error) {
	r := allocation.AllocateRequest{
		Kind: "example", Regions: []allocation.RegionState{{ID: "a", Zone: "east"}, {ID: "b", Zone: "west"}},
		Fitness: allocation.Fitness{OneVersion: true, NoneUnreachable: true, NoneJoining: true},
	}
	for shard := range allocation.Shard(4) {
		r.Shards = append(r.Shards, allocation.Pending{Shard: shard})
	}
	res, err := s.Allocate(ctx, r)
	return fmt.Sprintf("%d of 4 shards placed on 2 regions", len(res.Placements)), err
}
