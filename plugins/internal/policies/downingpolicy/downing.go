// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package downingpolicy is the policy that decides which nodes go after a partition.
//
// The contract leaves out of a view the protocols, services and settings of members, and
// the versions of unreachable records. Views share strings and role lists with the
// messages they came from, and the other way round; neither is ever modified.
//
// A [Provider] owns nothing: the owner of the connection supervises and closes it. It may
// be called from any goroutine, several at a time. All functions are pure.
package downingpolicy

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/contract"
	"github.com/quorate/quorate/plugins/internal/server"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Contract describes the policy.
func Contract() contract.Of[downing.Provider] {
	return contract.Of[downing.Provider]{
		Name:   plugins.Downing,
		Client: func(t client.Target) downing.Provider { return New(t) },
		Register: func(r grpc.ServiceRegistrar, s *server.Server) {
			pluginv1.RegisterDowningServer(r, &service{server: s})
		},
		Class: func(p downing.Provider) plugins.Class {
			c := p.Class()
			return plugins.Class{Pure: c.Pure, MajorityOnly: c.MajorityOnly}
		},
		Try: try,
	}
}

// Provider is a downing provider in another process.
type Provider struct {
	target client.Target
	class  downing.Class
	calls  pluginv1.DowningClient

	acknowledged atomic.Pointer[acknowledged] // Nil while the plugin has not said that it keeps any.
}

var _ downing.Provider = (*Provider)(nil)

// New returns the provider behind a connection to a plugin.
func New(t client.Target) *Provider {
	return &Provider{
		target: t, class: downing.Class{Pure: t.Class.Pure, MajorityOnly: t.Class.MajorityOnly},
		calls: pluginv1.NewDowningClient(t.Conn),
	}
}

// Class returns what the plugin declared.
func (p *Provider) Class() downing.Class { return p.class }

// Decide asks the plugin, and checks the decision.
func (p *Provider) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	return client.Ask(ctx, &p.target, "decide",
		func() (request, error) { return p.request(&v) },
		func(ctx context.Context, r request, opts ...grpc.CallOption) (*pluginv1.DowningDecideResponse, error) {
			return p.send(ctx, &v, r, opts)
		},
		func(a *pluginv1.DowningDecideResponse) (downing.Decision, error) {
			d, err := DecisionFromProto(&v, a)
			if err == nil {
				err = downing.Check(v, p.class, d)
			}
			return d, err
		})
}

// request returns the request for a view, without the nodes and members that the plugin
// has.
func (p *Provider) request(v *downing.View) (request, error) {
	if err := v.Validate(); err != nil {
		return request{}, err
	}
	if a := p.acknowledged.Load(); a != nil {
		if r, ok := a.request(v); ok {
			return r, nil
		}
	}
	return newRequest(v), nil
}

// send sends a request, and sends it as a whole if the plugin lacks what it left out: the
// plugin has decided nothing then. What the answer says is kept is left out from now on.
func (p *Provider) send(ctx context.Context, v *downing.View, r request, opts []grpc.CallOption) (*pluginv1.DowningDecideResponse, error) {
	a, err := p.calls.Decide(ctx, r.DowningDecideRequest, opts...)
	if err != nil && r.Members == nil && lacksMembers(err) {
		p.acknowledged.CompareAndSwap(r.keeps, nil)
		if p.target.Resent != nil {
			p.target.Resent()
		}
		r = newRequest(v)
		a, err = p.calls.Decide(ctx, r.DowningDecideRequest, opts...)
	}
	if err == nil && r.Members != nil && a.GetKept() == r.keeps.number {
		p.acknowledged.Store(r.keeps)
	}
	return a, err
}

// service serves the calls of a downing provider.
type service struct {
	pluginv1.UnimplementedDowningServer
	server *server.Server
	keeper keeper
}

// Decide asks the provider. The host checks the decision, against its own view: this one may be
// no view any more, since a provider can sort the lists that it was given.
func (s *service) Decide(ctx context.Context, r *pluginv1.DowningDecideRequest) (*pluginv1.DowningDecideResponse, error) {
	var number uint64
	return server.Answer(ctx, s.server, "decide",
		func() (v downing.View, err error) {
			v, number, err = s.keeper.view(r)
			return v, err
		},
		downing.Provider.Decide,
		func(v *downing.View, d *downing.Decision) (*pluginv1.DowningDecideResponse, error) {
			a, err := DecisionToProto(v, d)
			if err == nil {
				a.Kept = number
			}
			return a, err
		})
}

// try asks a provider for a decision on the view of two of three members to which the
// third is unreachable.
func try(ctx context.Context, p downing.Provider) (string, error) {
	var v downing.View
	var voters []gossip.NodeID
	for i := range uint16(3) {
		id := gossip.NodeID{Address: gossip.Address{Host: "127.0.0.1", Port: 7001 + i}, UID: gossip.UID(i + 1)}
		voters = append(voters, id)
		v.Members = append(v.Members, &gossip.Member{Node: id, Status: gossip.Up, UpNumber: gossip.UpNumber(i + 1), Roles: []string{}})
	}
	v.Self, v.Seen, v.Base = voters[0], voters[:2], gossip.Base{voters}
	v.Unreachable = []gossip.Record{{Observer: voters[0], Subject: voters[2], Status: gossip.Unreachable, Version: 1}}
	v.Stable, v.Unstable = 5*time.Second, 5*time.Second
	d, err := p.Decide(ctx, v)
	return fmt.Sprintf("one of three members is unreachable: %s, %d down; %s", d.Verdict, len(d.Down), d.Reason), err
}
