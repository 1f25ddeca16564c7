// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/wire"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// options keep the limits of the contract, whatever the connection permits.
func options() []grpc.CallOption {
	return []grpc.CallOption{
		grpc.MaxCallSendMsgSize(plugins.RequestBytesMax), grpc.MaxCallRecvMsgSize(plugins.AnswerBytesMax),
	}
}

// Configure hands the plugin its settings, as JSON; nil is none. The name is that
// in the cluster's file. It returns what the plugin says about itself. An error
// that is not about the call matches [plugins.ErrSettings]. The context bounds it.
func Configure(ctx context.Context, conn grpc.ClientConnInterface, name, hostVersion string, settings map[string]any) (plugins.Manifest, error) {
	const call = "configure"
	r := &pluginv1.ConfigureRequest{HostVersion: hostVersion, Name: name}
	if len(settings) > 0 {
		text, err := json.Marshal(settings)
		if err != nil {
			return plugins.Manifest{}, &plugins.CallError{Plugin: name, Call: call, Err: plugins.ErrSettings, Cause: err}
		}
		r.Settings = text
	}
	p, err := pluginv1.NewPluginClient(conn).Configure(ctx, r, options()...)
	if err != nil {
		return plugins.Manifest{}, callError(ctx, name, call, err)
	}
	m, err := wire.ManifestFromProto(p)
	switch {
	case errors.Is(err, plugins.ErrSettings):
		return m, &plugins.CallError{Plugin: name, Call: call, Err: plugins.ErrSettings, Cause: err}
	case err != nil:
		return m, &plugins.CallError{Plugin: name, Call: call, Err: plugins.ErrAnswer, Cause: err}
	}
	return m, nil
}

// target is a plugin to be called.
type target struct {
	name    string
	timeout time.Duration
}

// Downing is a downing provider in another process.
type Downing struct {
	target
	class downing.Class
	calls pluginv1.DowningClient
}

var _ downing.Provider = (*Downing)(nil)

// NewDowning returns the provider behind a connection to a plugin that is
// configured. The name is that in the cluster's file, the class what the plugin
// declared, and no call takes longer than the timeout.
func NewDowning(conn grpc.ClientConnInterface, name string, class plugins.Class, timeout time.Duration) *Downing {
	return &Downing{
		target: target{name, timeout}, class: downing.Class{Pure: class.Pure, MajorityOnly: class.MajorityOnly},
		calls: pluginv1.NewDowningClient(conn),
	}
}

// Class returns what the plugin declared.
func (d *Downing) Class() downing.Class { return d.class }

// Decide asks the plugin, and checks the decision.
func (d *Downing) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	const call = "decide"
	r, err := wire.ViewToProto(&v)
	if err != nil {
		return downing.Decision{}, &plugins.CallError{Plugin: d.name, Call: call, Err: plugins.ErrRequest, Cause: err}
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	p, err := d.calls.Decide(ctx, r, options()...)
	if err != nil {
		return downing.Decision{}, callError(ctx, d.name, call, err)
	}
	decision, err := wire.DecisionFromProto(&v, p)
	if err == nil {
		err = downing.Check(v, d.class, decision)
	}
	if err != nil {
		return downing.Decision{}, &plugins.CallError{Plugin: d.name, Call: call, Err: plugins.ErrAnswer, Cause: err}
	}
	return decision, nil
}

// Allocation is an allocation strategy in another process.
type Allocation struct {
	target
	class allocation.Class
	calls pluginv1.AllocationClient
}

var (
	_ allocation.Strategy = (*Allocation)(nil)
	_ allocation.Classed  = (*Allocation)(nil)
)

// NewAllocation returns the strategy behind a connection to a plugin that is
// configured; the arguments are those of [NewDowning].
func NewAllocation(conn grpc.ClientConnInterface, name string, class plugins.Class, timeout time.Duration) *Allocation {
	return &Allocation{
		target: target{name, timeout}, class: allocation.Class{Pure: class.Pure}, calls: pluginv1.NewAllocationClient(conn),
	}
}

// Class returns what the plugin declared.
func (a *Allocation) Class() allocation.Class { return a.class }

// Allocate asks the plugin, and checks the placements.
func (a *Allocation) Allocate(ctx context.Context, r allocation.AllocateRequest) (allocation.AllocateResult, error) {
	const call = "allocate"
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	p, err := a.calls.Allocate(ctx, wire.AllocateToProto(&r), options()...)
	if err != nil {
		return allocation.AllocateResult{}, callError(ctx, a.name, call, err)
	}
	res, err := wire.AllocateResultFromProto(&r, p)
	if err == nil {
		err = allocation.CheckAllocate(&r, &res)
	}
	if err != nil {
		return allocation.AllocateResult{}, &plugins.CallError{Plugin: a.name, Call: call, Err: plugins.ErrAnswer, Cause: err}
	}
	return res, nil
}

// Rebalance asks the plugin, and checks the moves.
func (a *Allocation) Rebalance(ctx context.Context, r allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	const call = "rebalance"
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	p, err := a.calls.Rebalance(ctx, wire.RebalanceToProto(&r), options()...)
	if err != nil {
		return allocation.RebalanceResult{}, callError(ctx, a.name, call, err)
	}
	res, err := wire.RebalanceResultFromProto(&r, p)
	if err == nil {
		err = allocation.CheckRebalance(&r, &res)
	}
	if err != nil {
		return allocation.RebalanceResult{}, &plugins.CallError{Plugin: a.name, Call: call, Err: plugins.ErrAnswer, Cause: err}
	}
	return res, nil
}

// callError says in the words of package plugins why a call has no answer.
func callError(ctx context.Context, name, call string, err error) error {
	if away, ok := errors.AsType[*plugins.UnavailableError](err); ok {
		return &plugins.CallError{Plugin: name, Call: call, Err: plugins.ErrUnavailable, Cause: away}
	}
	s := status.Convert(err)
	e := &plugins.CallError{Plugin: name, Call: call, Err: sentinel(ctx, s.Code())}
	if text := wire.Line(s.Message(), wire.TextBytesMax); text != "" {
		e.Cause = errors.New(text)
	}
	return e
}

// sentinel returns what a status means for the host.
func sentinel(ctx context.Context, code codes.Code) error {
	switch code {
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case codes.Canceled:
		// A connection that is closed under a call says so too.
		if ctx.Err() == nil {
			return plugins.ErrUnavailable
		}
		return ctx.Err()
	case codes.Unavailable:
		return plugins.ErrUnavailable
	case codes.Unknown:
		return plugins.ErrStrategy
	case codes.InvalidArgument, codes.FailedPrecondition:
		return plugins.ErrRequest
	case codes.ResourceExhausted:
		return plugins.ErrLimit
	case codes.Unimplemented:
		return plugins.ErrKind
	case codes.Internal:
		return plugins.ErrFault
	default:
		return plugins.ErrAnswer
	}
}
