// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"reflect"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/server"
)

// Of describes the policy whose strategies are a T.
type Of[T any] struct {
	// Name is the policy in the cluster's file.
	Name plugins.Policy
	// Client returns the strategy behind a connection. It checks every answer.
	Client func(client.Target) T
	// Register adds the services of the policy to a gRPC server.
	Register func(grpc.ServiceRegistrar, *server.Server)
	// Class returns what a strategy promises.
	Class func(T) plugins.Class
	// Try asks a strategy for a small decision, and says what was decided.
	Try func(context.Context, T) (string, error)
}

// Policy is a description whose type of strategy is a value.
type Policy struct {
	// Strategy is the type of the strategies, an interface.
	Strategy reflect.Type
	// Service is how a strategy is served.
	Service server.Service
	// Client returns the strategy behind a connection.
	Client func(client.Target) any
	// Try asks a strategy for a small decision, and says what was decided.
	Try func(ctx context.Context, strategy any) (string, error)
}

// Policy returns the description as an element of a table.
func (o Of[T]) Policy() Policy {
	// A strategy of another type is a defect of the table.
	return Policy{
		Strategy: reflect.TypeFor[T](),
		Service: server.Service{
			Policy: o.Name, Register: o.Register,
			Class: func(strategy any) plugins.Class { return o.Class(strategy.(T)) },
		},
		Client: func(t client.Target) any { return o.Client(t) },
		Try:    func(ctx context.Context, strategy any) (string, error) { return o.Try(ctx, strategy.(T)) },
	}
}

// Name is the policy in the cluster's file.
func (k Policy) Name() plugins.Policy { return k.Service.Policy }
