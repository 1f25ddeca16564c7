// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package discoverypolicy is the policy that finds the contact points of a service.
//
// A [Method] owns nothing: the owner of the connection supervises and closes it. It may be
// called from any goroutine, several at a time. All functions are pure.
package discoverypolicy

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/contract"
	"github.com/quorate/quorate/plugins/internal/server"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Contract describes the policy.
func Contract() contract.Of[discovery.Discovery] {
	return contract.Of[discovery.Discovery]{
		Name:   plugins.Discovery,
		Client: func(t client.Target) discovery.Discovery { return New(t) },
		Register: func(r grpc.ServiceRegistrar, s *server.Server) {
			pluginv1.RegisterDiscoveryServer(r, &service{server: s})
		},
		Class: func(d discovery.Discovery) plugins.Class { return plugins.Class{Pure: discovery.ClassOf(d).Pure} },
		Try:   try,
	}
}

// Method is a [discovery.Discovery] that a plugin serves in another process.
type Method struct {
	target client.Target
}

var (
	_ discovery.Discovery = (*Method)(nil)
	_ discovery.Classed   = (*Method)(nil)
)

// New returns the method behind a connection to a plugin.
func New(t client.Target) *Method {
	return &Method{target: t}
}

// Class returns what the plugin declared.
func (m *Method) Class() discovery.Class { return discovery.Class{Pure: m.target.Class.Pure} }

// Lookup asks the plugin, and checks the contact points that it has found.
func (m *Method) Lookup(ctx context.Context, q discovery.Query) (discovery.Targets, error) {
	return client.Ask(ctx, &m.target, "lookup",
		func() (*pluginv1.LookupRequest, error) { return QueryToProto(&q) },
		func(ctx context.Context, r *pluginv1.LookupRequest, opts ...grpc.CallOption) (*answer, error) {
			a := new(answer)
			return a, m.target.Conn.Invoke(ctx, pluginv1.Discovery_Lookup_FullMethodName, r, a, opts...)
		},
		func(a *answer) (discovery.Targets, error) { return a.found, a.err })
}

// service serves the calls of a method.
type service struct {
	pluginv1.UnimplementedDiscoveryServer
	server *server.Server
}

// Lookup asks the method.
func (s *service) Lookup(ctx context.Context, r *pluginv1.LookupRequest) (*pluginv1.LookupResponse, error) {
	return server.Answer(ctx, s.server, "lookup",
		func() (discovery.Query, error) { return QueryFromProto(r) },
		discovery.Discovery.Lookup,
		func(_ *discovery.Query, t *discovery.Targets) (*pluginv1.LookupResponse, error) {
			return TargetsToProto(t)
		})
}

// try asks a method for the contact points of a service "example".
func try(ctx context.Context, d discovery.Discovery) (string, error) {
	found, err := d.Lookup(ctx, discovery.Query{Service: "example"})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d contact points of the service example: %s", len(found.List), found.Reason), nil
}
