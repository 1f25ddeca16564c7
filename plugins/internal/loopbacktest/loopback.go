// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package loopbacktest connects a gRPC client with a server inside one test, through
// memory, with the limits of the contract with plugins.
package loopbacktest

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quorate/quorate/plugins/internal/server"
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
