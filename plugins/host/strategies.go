// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/contract"
	"github.com/quorate/quorate/plugins/internal/policies"
)

// Policies returns the policies that are run.
func Policies() []plugins.Policy { return policies.Names() }

// As returns the plugin as a strategy of type T, the interface of its policy, such as
// [downing.Provider]. It stays valid for as long as the plugin is open, over restarts
// and swaps. Errors of its calls are of type [*plugins.CallError]. It returns an error
// that matches [plugins.ErrPolicy] if the plugin decides something else.
func As[T any](p *Plugin) (T, error) {
	var none T
	policy, ok := policies.Of[T]()
	if !ok {
		return none, &plugins.Error{
			Plugin: p.name, Err: plugins.ErrPolicy, Cause: fmt.Errorf("no policy is a %v", reflect.TypeFor[T]()),
			Cure: "ask for the interface of a strategy",
		}
	}
	if is := p.Manifest().Policy; is != policy.Name() {
		return none, &plugins.Error{
			Plugin: p.name, Err: plugins.ErrPolicy, Cause: fmt.Errorf("it is for %s, and is used for %s", is, policy.Name()),
			Cure: "name a plugin for that policy where the strategy is chosen",
		}
	}
	// The table has it by this type.
	return p.strategy(policy).(T), nil
}

// Downing returns the plugin as a downing provider; see [As].
func (p *Plugin) Downing() (downing.Provider, error) { return As[downing.Provider](p) }

// Allocation returns the plugin as an allocation strategy; see [As].
func (p *Plugin) Allocation() (allocation.Strategy, error) { return As[allocation.Strategy](p) }

// FailureDetector returns the plugin as a judge of heartbeats; see [As].
func (p *Plugin) FailureDetector() (fd.Judge, error) { return As[fd.Judge](p) }

// JoinDecider returns the plugin as what decides for a node without a cluster; see [As].
func (p *Plugin) JoinDecider() (bootstrap.JoinDecider, error) { return As[bootstrap.JoinDecider](p) }

// Discovery returns the plugin as a method of discovery; see [As].
func (p *Plugin) Discovery() (discovery.Discovery, error) { return As[discovery.Discovery](p) }

// Try asks the plugin for a small decision of its policy, and returns the question and
// the decision in words. It also asks a strategy for which a question has effects
// outside, such as a witness that gives its vote.
func (p *Plugin) Try(ctx context.Context) (string, error) {
	policy, _ := policies.Named(p.Manifest().Policy) // An open plugin has a policy of the table.
	return policy.Try(ctx, p.strategy(policy))
}

// strategy returns the plugin as a strategy of its policy, always the same: what it knows of
// the process that answers, such as the members that the process has kept, is true of its own
// calls only. Its calls are counted.
func (p *Plugin) strategy(policy contract.Policy) any {
	p.asked.Do(func() {
		p.answers = policy.Client(client.Target{
			Conn: connection{p}, Name: p.name, Class: p.Manifest().Class, Timeout: drainTimeout,
			Resent: func() { p.resent.Add(1) }, Called: p.called,
		})
	})
	return p.answers
}

// called counts a call and tells the observer.
func (p *Plugin) called(ctx context.Context, call string, began time.Time, err error) {
	p.calls.Add(1)
	if err != nil {
		p.failures.Add(1)
	}
	took := time.Since(began)
	p.lastCall.Store(&plugins.Call{Name: call, At: began, Took: took, Err: err})
	p.observe(plugins.Event{Type: plugins.Called, Call: call, Latency: took, Err: err, Span: trace.SpanContextFromContext(ctx)})
}
