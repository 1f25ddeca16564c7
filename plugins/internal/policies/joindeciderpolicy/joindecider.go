// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package joindeciderpolicy is the policy that decides what a node without a cluster does
// next.
//
// On the wire a contact point is "host:port": where discovery knows both the name and the IP
// address of a host, the address is left out.
//
// A [Decider] owns nothing: the owner of the connection supervises and closes it. It may
// be called from any goroutine, several at a time. All functions are pure.
package joindeciderpolicy

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/contract"
	"github.com/quorate/quorate/plugins/internal/server"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Contract describes the policy.
func Contract() contract.Of[bootstrap.JoinDecider] {
	return contract.Of[bootstrap.JoinDecider]{
		Name:   plugins.JoinDecider,
		Client: func(t client.Target) bootstrap.JoinDecider { return New(t) },
		Register: func(r grpc.ServiceRegistrar, s *server.Server) {
			pluginv1.RegisterJoinDeciderServer(r, &service{server: s})
		},
		Class: func(d bootstrap.JoinDecider) plugins.Class { return plugins.Class{Pure: bootstrap.ClassOf(d).Pure} },
		Try:   try,
	}
}

// Decider is a [bootstrap.JoinDecider] that a plugin serves in another process.
type Decider struct {
	target client.Target
	calls  pluginv1.JoinDeciderClient
}

var (
	_ bootstrap.JoinDecider = (*Decider)(nil)
	_ bootstrap.Classed     = (*Decider)(nil)
)

// New returns the decider behind a connection to a plugin.
func New(t client.Target) *Decider {
	return &Decider{target: t, calls: pluginv1.NewJoinDeciderClient(t.Conn)}
}

// Class returns what the plugin declared.
func (d *Decider) Class() bootstrap.Class { return bootstrap.Class{Pure: d.target.Class.Pure} }

// Decide asks the plugin, and checks the decision.
func (d *Decider) Decide(ctx context.Context, o bootstrap.Observations) (bootstrap.Decision, error) {
	return client.Ask(ctx, &d.target, "decide",
		func() (*pluginv1.JoinDeciderDecideRequest, error) { return ObservationsToProto(&o) },
		d.calls.Decide,
		func(a *pluginv1.JoinDeciderDecideResponse) (bootstrap.Decision, error) {
			return DecisionFromProto(&o, a)
		})
}

// service serves the calls of a decider.
type service struct {
	pluginv1.UnimplementedJoinDeciderServer
	server *server.Server
}

// Decide asks the decider.
func (s *service) Decide(ctx context.Context, r *pluginv1.JoinDeciderDecideRequest) (*pluginv1.JoinDeciderDecideResponse, error) {
	return server.Answer(ctx, s.server, "decide",
		func() (bootstrap.Observations, error) { return ObservationsFromProto(r) },
		bootstrap.JoinDecider.Decide,
		DecisionToProto)
}

// try asks a decider what the first of three contact points does, when all of them answer and
// the margin has passed.
func try(ctx context.Context, d bootstrap.JoinDecider) (string, error) {
	const margin = 5 * time.Second
	o := bootstrap.Observations{Service: "example", Required: 3, StableMargin: margin, Stable: margin}
	for i := range uint16(3) {
		o.Points = append(o.Points, bootstrap.Observed{Point: discovery.Target{Host: "127.0.0.1", Port: 7001 + i}})
	}
	o.Self = o.Points[0].Point
	decision, err := d.Decide(ctx, o)
	return fmt.Sprintf("3 of 3 contact points answer: %v; %s", decision.Action, decision.Reason), err
}
