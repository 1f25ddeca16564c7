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

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/wire"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// stackBytes bounds what is logged of the stack of a panic.
const stackBytes = 4096

// Strategy is what a plugin serves.
type Strategy struct {
	// Kind, Name and Version are what the plugin says about itself.
	Kind          plugins.Kind
	Name, Version string
	// Configure makes the strategy from its settings, a JSON object or nothing. It
	// is called again if it fails. Errors that are [plugins.SettingErrors] are told
	// one by one, others as one fault without a key.
	Configure func(settings []byte) (Instance, error)
}

// Instance is a strategy that is ready: the field of the plugin's kind is set.
type Instance struct {
	Downing    downing.Provider
	Allocation allocation.Strategy
}

// class returns what the strategy promises.
func (i *Instance) class() plugins.Class {
	switch {
	case i.Downing != nil:
		c := i.Downing.Class()
		return plugins.Class{Pure: c.Pure, MajorityOnly: c.MajorityOnly}
	case i.Allocation != nil:
		return plugins.Class{Pure: allocation.ClassOf(i.Allocation).Pure}
	default:
		return plugins.Class{}
	}
}

// Server answers the calls of one host.
type Server struct {
	strategy Strategy
	log      *slog.Logger
	slots    chan struct{} // Holds an element for each call in hand.
	setup    chan struct{} // Held by Configure.
	ready    atomic.Pointer[Instance]
}

// New returns a server that waits to be configured.
func New(s Strategy, log *slog.Logger) *Server {
	return &Server{strategy: s, log: log, slots: make(chan struct{}, plugins.CallsMax), setup: make(chan struct{}, 1)}
}

// workers is how many goroutines wait for calls, of which a host has one at a time and
// looks after the plugin's health meanwhile. Further calls get goroutines of their own.
const workers = 2

// Options are what a gRPC server needs to keep the limits of the contract, and to be
// fast at single calls: a goroutine that has had a call has the stack for one.
func Options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(plugins.RequestBytesMax), grpc.MaxSendMsgSize(plugins.AnswerBytesMax),
		grpc.StaticStreamWindowSize(wire.WindowBytes), grpc.StaticConnWindowSize(wire.WindowBytes),
		grpc.NumStreamWorkers(workers),
	}
}

// Register adds the services of the plugin's kind to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	pluginv1.RegisterPluginServer(r, &pluginService{server: s})
	switch s.strategy.Kind {
	case plugins.Downing:
		pluginv1.RegisterDowningServer(r, &downingService{server: s})
	case plugins.Allocation:
		pluginv1.RegisterAllocationServer(r, &allocationService{server: s})
	default:
		// The kit makes no plugins of other kinds: no host asks them yet.
	}
}

// Ready reports whether the plugin has been configured.
func (s *Server) Ready() bool { return s.ready.Load() != nil }

// call runs one call with a slot, and turns errors and panics into a status.
func call[R any](ctx context.Context, s *Server, name string, run func(*Instance) (R, error)) (R, error) {
	var none R
	instance := s.ready.Load()
	if instance == nil {
		return none, status.Error(codes.FailedPrecondition, name+": the plugin is not configured")
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return none, status.Errorf(codes.ResourceExhausted, "%s: %d calls are in hand", name, cap(s.slots))
	}
	defer func() { <-s.slots }()
	answer, err := guarded(s, name, func() (R, error) { return run(instance) })
	if err != nil {
		return none, statusOf(ctx, err)
	}
	return answer, nil
}

// panicked is what a strategy panicked with.
type panicked struct{ text string }

func (p *panicked) Error() string { return "panic: " + p.text }

// guarded turns a panic into an error, and logs where it came from.
func guarded[R any](s *Server, name string, run func() (R, error)) (answer R, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			stack := debug.Stack()
			s.log.Error("the strategy panicked", "call", name, "panic", fmt.Sprint(cause), "stack", string(stack[:min(len(stack), stackBytes)]))
			err = &panicked{fmt.Sprint(cause)}
		}
	}()
	return run()
}

// statusOf returns the status for an error of a strategy. What it wraps of gRPC is
// not passed on: it would be taken for an error of this connection.
func statusOf(ctx context.Context, err error) error {
	code := codes.Unknown
	var fault *panicked
	switch {
	case errors.As(err, &fault):
		code = codes.Internal
	case errors.Is(err, errRequest):
		code = codes.InvalidArgument
	case errors.Is(err, errAnswer):
		code = codes.Internal
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(ctx.Err(), context.Canceled):
		code = codes.Canceled
	}
	return status.Error(code, wire.Line(err.Error(), wire.TextBytesMax))
}

var (
	errRequest = errors.New("request")
	errAnswer  = errors.New("answer")
)

// pluginService serves Configure.
type pluginService struct {
	pluginv1.UnimplementedPluginServer
	server *Server
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
	if len(r.GetSettings()) > plugins.SettingsBytesMax {
		return nil, status.Errorf(codes.ResourceExhausted, "configure: settings of %d bytes, the limit is %d", len(r.GetSettings()), plugins.SettingsBytesMax)
	}
	type made struct {
		instance Instance
		class    plugins.Class
	}
	m, err := guarded(s, "configure", func() (made, error) {
		i, err := s.strategy.Configure(r.GetSettings())
		if err != nil {
			return made{}, err
		}
		return made{i, i.class()}, nil
	})
	if _, ok := errors.AsType[*panicked](err); ok {
		return nil, statusOf(ctx, err)
	}
	if err != nil {
		return &pluginv1.ConfigureResponse{Errors: settingErrors(err)}, nil
	}
	s.ready.Store(&m.instance)
	return &pluginv1.ConfigureResponse{
		Name: wire.Line(s.strategy.Name, wire.NameBytesMax), Version: wire.Line(s.strategy.Version, wire.NameBytesMax),
		Kind: wire.KindToProto(s.strategy.Kind), Class: &pluginv1.Class{Pure: m.class.Pure, MajorityOnly: m.class.MajorityOnly},
	}, nil
}

// settingErrors returns the faults in err.
func settingErrors(err error) []*pluginv1.SettingError {
	var faults plugins.SettingErrors
	if !errors.As(err, &faults) {
		faults = plugins.SettingErrors{{Reason: err.Error()}}
	}
	var list []*pluginv1.SettingError
	for _, f := range faults[:min(len(faults), wire.SettingErrorsMax)] {
		list = append(list, &pluginv1.SettingError{
			Key: wire.Line(f.Key, wire.SettingKeyBytesMax), Reason: wire.Line(f.Reason, wire.TextBytesMax),
		})
	}
	return list
}

// downingService serves the calls of a downing provider.
type downingService struct {
	pluginv1.UnimplementedDowningServer
	server *Server
}

// Decide asks the provider.
func (d *downingService) Decide(ctx context.Context, r *pluginv1.DowningDecideRequest) (*pluginv1.DowningDecideResponse, error) {
	return call(ctx, d.server, "decide", func(i *Instance) (*pluginv1.DowningDecideResponse, error) {
		view, err := wire.ViewFromProto(r)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errRequest, err)
		}
		decision, err := i.Downing.Decide(ctx, view)
		if err != nil {
			return nil, err
		}
		return answered(wire.DecisionToProto(&view, &decision))
	})
}

// answered marks the error of a conversion as the fault of the strategy that it is.
func answered[R any](answer R, err error) (R, error) {
	if err != nil {
		return answer, fmt.Errorf("%w: %w", errAnswer, err)
	}
	return answer, nil
}

// allocationService serves the calls of an allocation strategy.
type allocationService struct {
	pluginv1.UnimplementedAllocationServer
	server *Server
}

// Allocate asks the strategy for homes.
func (a *allocationService) Allocate(ctx context.Context, r *pluginv1.AllocateRequest) (*pluginv1.AllocateResponse, error) {
	return call(ctx, a.server, "allocate", func(i *Instance) (*pluginv1.AllocateResponse, error) {
		request, err := wire.AllocateFromProto(r)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errRequest, err)
		}
		res, err := i.Allocation.Allocate(ctx, request)
		if err != nil {
			return nil, err
		}
		return answered(wire.AllocateResultToProto(&request, &res))
	})
}

// Rebalance asks the strategy for moves.
func (a *allocationService) Rebalance(ctx context.Context, r *pluginv1.RebalanceRequest) (*pluginv1.RebalanceResponse, error) {
	return call(ctx, a.server, "rebalance", func(i *Instance) (*pluginv1.RebalanceResponse, error) {
		request, err := wire.RebalanceFromProto(r)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errRequest, err)
		}
		res, err := i.Allocation.Rebalance(ctx, request)
		if err != nil {
			return nil, err
		}
		return answered(wire.RebalanceResultToProto(&request, &res))
	})
}
