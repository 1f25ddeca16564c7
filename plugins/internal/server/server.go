// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/wire"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// A server is made for a strategy ([New]), described to its host and configured by it
// ([pluginService.Describe], [pluginService.Configure]), and then answers calls ([Answer]),
// each with one of a bounded number of slots.

// stackBytes bounds how much of the stack of a panic is logged.
const stackBytes = 4096

// Service is what the server needs to know of a policy.
type Service struct {
	// Policy is the name of the policy.
	Policy plugins.Policy
	// Register adds the services of the policy to a gRPC server; they use [Answer].
	Register func(grpc.ServiceRegistrar, *Server)
	// Class returns what a strategy of the policy promises.
	Class func(strategy any) plugins.Class
}

// Strategy is what a plugin serves.
type Strategy struct {
	Service

	// Name and Version are the name and version that the plugin declares.
	Name, Version string
	// Configure makes the strategy, of the type that the policy asks for, from its
	// settings, a JSON object or nothing. It is called again if it fails. Errors that are
	// [plugins.SettingErrors] are reported one by one, other errors as one fault without
	// a key.
	Configure func(settings []byte) (any, error)
	// Schema returns the JSON Schema of the settings; nil: there is none.
	Schema func() ([]byte, error)
}

// Server answers the calls of one host.
type Server struct {
	strategy Strategy
	log      *slog.Logger
	tracer   *meter.Tracer
	slots    chan struct{}       // Holds an element for each call in hand.
	setup    chan struct{}       // Held by Configure.
	ready    atomic.Pointer[any] // The strategy, once it is configured.
}

// New returns a server that waits to be configured.
func New(s Strategy, log *slog.Logger) *Server {
	return &Server{strategy: s, log: log, tracer: newTracer(), slots: make(chan struct{}, plugins.MaxCalls), setup: make(chan struct{}, 1)}
}

// workers is how many goroutines wait for calls: a host has one call at a time and checks
// the plugin's health meanwhile. Further calls get goroutines of their own.
const workers = 2

// Options are what a gRPC server needs to keep the limits of the contract, and to answer
// single calls quickly: a goroutine that has served a call has a stack that is large
// enough for the next.
func Options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(plugins.MaxRequestBytes), grpc.MaxSendMsgSize(plugins.MaxAnswerBytes),
		grpc.StaticStreamWindowSize(wire.WindowBytes), grpc.StaticConnWindowSize(wire.WindowBytes),
		grpc.NumStreamWorkers(workers),
	}
}

// Register adds the services of the plugin's policy to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	pluginv1.RegisterPluginServer(r, &pluginService{server: s})
	if s.strategy.Register != nil {
		s.strategy.Register(r, s)
	}
}

// Ready reports whether the plugin has been configured.
func (s *Server) Ready() bool { return s.ready.Load() != nil }

// Answer answers one call with a slot: question reads the request, ask asks the strategy,
// and answer makes the message of its answer. Errors and panics become a status.
func Answer[T, Q, R, P any](
	ctx context.Context, s *Server, call string,
	question func() (Q, error), ask func(T, context.Context, Q) (R, error), answer func(*Q, *R) (P, error),
) (P, error) {
	return slotted(ctx, s, call, func(ctx context.Context, strategy any) (P, error) {
		var none P
		q, err := question()
		if err != nil {
			return none, fmt.Errorf("%w: %w", errRequest, err)
		}
		// A strategy of another type is a defect, and a panic is an answer.
		r, err := ask(strategy.(T), ctx, q)
		if err != nil {
			return none, err
		}
		p, err := answer(&q, &r)
		if err != nil {
			// An answer that the contract cannot express is the fault of the strategy.
			return none, fmt.Errorf("%w: %w", errAnswer, err)
		}
		return p, nil
	})
}

// slotted runs one call with a slot.
func slotted[R any](ctx context.Context, s *Server, name string, run func(ctx context.Context, strategy any) (R, error)) (answer R, err error) {
	ctx, over := s.traced(ctx)
	defer func() { over(err) }()
	var none R
	strategy := s.ready.Load()
	if strategy == nil {
		return none, status.Error(codes.FailedPrecondition, name+": the plugin is not configured")
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return none, status.Errorf(codes.ResourceExhausted, "%s: %d calls are in hand", name, cap(s.slots))
	}
	defer func() { <-s.slots }()
	answer, err = guarded(ctx, s, name, func() (R, error) { return run(ctx, *strategy) })
	if err != nil {
		return none, statusOf(ctx, err)
	}
	return answer, nil
}

// panicError is the error of a strategy that panicked.
type panicError struct{ text string }

func (p *panicError) Error() string { return "panic: " + p.text }

// guarded turns a panic into an error, and logs its stack.
func guarded[R any](ctx context.Context, s *Server, name string, run func() (R, error)) (answer R, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			stack := debug.Stack()
			s.log.ErrorContext(ctx, "the strategy panicked", "call", name, "panic", fmt.Sprint(cause), "stack", string(stack[:min(len(stack), stackBytes)]))
			err = &panicError{fmt.Sprint(cause)}
		}
	}()
	return run()
}

// statusOf returns the status for an error of a strategy. A gRPC status that the error
// wraps is not passed on: it would be taken for an error of this connection.
func statusOf(ctx context.Context, err error) error {
	code := codes.Unknown
	var fault *panicError
	switch {
	case errors.As(err, &fault):
		code = codes.Internal
	case errors.Is(err, ErrNotKept):
		code = codes.FailedPrecondition
	case errors.Is(err, errRequest):
		code = codes.InvalidArgument
	case errors.Is(err, errAnswer):
		code = codes.Internal
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(ctx.Err(), context.Canceled):
		code = codes.Canceled
	}
	return status.Error(code, wire.Line(err.Error(), wire.MaxTextBytes))
}

// ErrNotKept is the error of a question for a request that leaves out what the plugin does
// not have. The host is told so by a status, and sends the whole.
var ErrNotKept = errors.New("what the request leaves out is not kept here")

var (
	errRequest = errors.New("request")
	errAnswer  = errors.New("answer")
)

// pluginService serves Describe and Configure.
type pluginService struct {
	pluginv1.UnimplementedPluginServer
	server *Server
}

// Describe says what is known of the plugin: its class once it is configured.
func (p *pluginService) Describe(ctx context.Context, _ *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	s := p.server
	about := &pluginv1.DescribeResponse{
		Name: wire.Line(s.strategy.Name, wire.MaxNameBytes), Version: wire.Line(s.strategy.Version, wire.MaxNameBytes),
		Policy: wire.PolicyToProto(s.strategy.Policy),
	}
	if strategy := s.ready.Load(); strategy != nil {
		about.Class = wire.ClassToProto(s.strategy.Class(*strategy))
	}
	if s.strategy.Schema == nil {
		return about, nil
	}
	schema, err := guarded(ctx, s, "describe", s.strategy.Schema)
	if err == nil && len(schema) > plugins.MaxSchemaBytes {
		err = fmt.Errorf("the schema of the settings has %d bytes, the limit is %d", len(schema), plugins.MaxSchemaBytes)
	}
	if err != nil {
		return nil, statusOf(ctx, fmt.Errorf("%w: %w", errAnswer, err))
	}
	about.SettingsSchema = schema
	return about, nil
}

// Configure makes the strategy.
func (p *pluginService) Configure(ctx context.Context, r *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	s := p.server
	select {
	case s.setup <- struct{}{}:
		defer func() { <-s.setup }()
	case <-ctx.Done():
		return nil, statusOf(ctx, ctx.Err())
	}
	if s.Ready() {
		return nil, status.Error(codes.FailedPrecondition, "configure: the plugin is configured already")
	}
	if len(r.GetSettings()) > plugins.MaxSettingsBytes {
		return nil, status.Errorf(codes.ResourceExhausted, "configure: settings of %d bytes, the limit is %d", len(r.GetSettings()), plugins.MaxSettingsBytes)
	}
	type made struct {
		strategy any
		class    plugins.Class
	}
	m, err := guarded(ctx, s, "configure", func() (made, error) {
		i, err := s.strategy.Configure(r.GetSettings())
		if err != nil {
			return made{}, err
		}
		return made{i, s.strategy.Class(i)}, nil
	})
	if _, ok := errors.AsType[*panicError](err); ok {
		return nil, statusOf(ctx, err)
	}
	if err != nil {
		return &pluginv1.ConfigureResponse{Errors: settingErrors(err)}, nil
	}
	s.ready.Store(&m.strategy)
	return &pluginv1.ConfigureResponse{
		Name: wire.Line(s.strategy.Name, wire.MaxNameBytes), Version: wire.Line(s.strategy.Version, wire.MaxNameBytes),
		Policy: wire.PolicyToProto(s.strategy.Policy), Class: wire.ClassToProto(m.class),
	}, nil
}

// settingErrors returns the faults in err.
func settingErrors(err error) []*pluginv1.SettingError {
	var faults plugins.SettingErrors
	if !errors.As(err, &faults) {
		faults = plugins.SettingErrors{{Reason: err.Error()}}
	}
	var list []*pluginv1.SettingError
	for _, f := range faults[:min(len(faults), wire.MaxSettingErrors)] {
		list = append(list, &pluginv1.SettingError{
			Key: wire.Line(f.Key, wire.MaxSettingKeyBytes), Reason: wire.Line(f.Reason, wire.MaxTextBytes),
		})
	}
	return list
}
