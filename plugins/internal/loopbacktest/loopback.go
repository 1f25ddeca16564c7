// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package loopbacktest connects a gRPC client with a server inside one test, through
// memory, with the limits of the contract with plugins ([Conn]), or hands the service itself
// out, for a test that stands between the two ([Service]).
package loopbacktest

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quorate/quorate/plugins/internal/server"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

const pipeBytes = 1 << 20

// Conn serves what register registers, and returns a connection to it. Both end
// with the test.
func Conn(tb testing.TB, register func(grpc.ServiceRegistrar)) *grpc.ClientConn {
	tb.Helper()
	pipe := bufconn.Listen(pipeBytes)
	g := grpc.NewServer(server.Options()...)
	register(g)
	done := make(chan struct{})
	// The goroutine ends with the server, which the cleanup stops and waits for.
	go func() {
		defer close(done)
		if err := g.Serve(pipe); err != nil {
			tb.Errorf("serve: %v", err)
		}
	}()
	conn, err := grpc.NewClient("passthrough:plugin",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		// A test may have closed it already, which is the only error there is.
		_ = conn.Close()
		g.Stop()
		<-done
	})
	return conn
}

// Service returns the service of a configured plugin, of the type S that is generated for the
// policy, without the way to it.
func Service[S any](tb testing.TB, policy server.Service, strategy any) S {
	tb.Helper()
	var all services
	server.New(server.Strategy{
		Service: policy, Name: "test", Configure: func([]byte) (any, error) { return strategy, nil },
	}, slog.New(slog.NewTextHandler(tb.Output(), nil))).Register(&all)
	if _, err := find[pluginv1.PluginServer](tb, all).Configure(tb.Context(), new(pluginv1.ConfigureRequest)); err != nil {
		tb.Fatal(err)
	}
	return find[S](tb, all)
}

// services takes what is registered.
type services []any

// RegisterService takes a service.
func (s *services) RegisterService(_ *grpc.ServiceDesc, service any) { *s = append(*s, service) }

// find returns the service of a type.
func find[S any](tb testing.TB, all services) S {
	tb.Helper()
	for _, service := range all {
		if s, ok := service.(S); ok {
			return s
		}
	}
	var none S
	tb.Fatalf("no %T among %d services", &none, len(all))
	return none
}
