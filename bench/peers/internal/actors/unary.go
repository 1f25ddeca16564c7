// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/bench/internal/harness"
)

// Unary is the floor of asks: calls of a method of gRPC, with nothing in between.
func Unary() Library {
	return Library{Name: "grpc-unary", Host: hostUnary, There: func(_ context.Context, s harness.Spec, address string) (Actors, error) {
		cc, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
		return caller{cc, s.Size}, err
	}}
}

const (
	unaryService = "peers.Unary"
	unaryMethod  = "Ask"
)

// hostUnary serves the method, which checks each message and answers with it.
func hostUnary(ctx context.Context, s harness.Spec, found *harness.Tally) (string, func(), error) {
	l, err := harness.Listen(ctx)
	if err != nil {
		return "", nil, err
	}
	var mu sync.Mutex // Guards the receiver.
	r := Receiver(s, found)
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: unaryService, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: unaryMethod, Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var m wrapperspb.BytesValue
			if err := decode(&m); err != nil {
				return nil, err
			}
			mu.Lock()
			Take(r, &m)
			mu.Unlock()
			return &m, nil
		}}},
	}, nil)
	var serving sync.WaitGroup
	// Owned by the caller: ends with the function that is returned, which waits for it.
	serving.Go(func() { _ = server.Serve(l) }) // Whoever asks finds out if it fails.
	return l.Addr().String(), func() {
		server.Stop()
		serving.Wait()
	}, nil
}

// caller asks over one connection.
type caller struct {
	cc   *grpc.ClientConn
	size int
}

// Tell fails: a call has an answer.
func (caller) Tell(context.Context, int, uint32, uint64) error { return errors.ErrUnsupported }

// Ask calls the method.
func (c caller) Ask(ctx context.Context, _ int, sender uint32, seq uint64) error {
	var answer wrapperspb.BytesValue
	if err := c.cc.Invoke(ctx, "/"+unaryService+"/"+unaryMethod, Question(c.size, sender, seq), &answer); err != nil {
		return err
	}
	return Answers(&answer, c.size, sender, seq)
}

// Close closes the connection.
func (c caller) Close() { _ = c.cc.Close() } // All answers are there.
