// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
)

// Downing returns the plugin as a downing provider. It stays valid for as long as
// the plugin is open, over restarts and swaps. Errors are of type
// [*plugins.CallError]. It returns an error that matches [plugins.ErrKind] if the
// plugin decides something else.
func (p *Plugin) Downing() (downing.Provider, error) {
	if err := p.mustBe(plugins.Downing); err != nil {
		return nil, err
	}
	return &provider{client.NewDowning(connection{p}, p.name, p.Manifest().Class, drainLimit), p}, nil
}

// Allocation returns the plugin as an allocation strategy; see [Plugin.Downing].
func (p *Plugin) Allocation() (allocation.Strategy, error) {
	if err := p.mustBe(plugins.Allocation); err != nil {
		return nil, err
	}
	return &strategy{client.NewAllocation(connection{p}, p.name, p.Manifest().Class, drainLimit), p}, nil
}

func (p *Plugin) mustBe(kind plugins.Kind) error {
	if is := p.Manifest().Kind; is != kind {
		return &plugins.Error{
			Plugin: p.name, Err: plugins.ErrKind, Cause: fmt.Errorf("it is of kind %s, and is used for %s", is, kind),
			Cure: "name a plugin of that kind where the strategy is chosen",
		}
	}
	return nil
}

// called counts a call and tells the observer.
func (p *Plugin) called(call string, began time.Time, err error) {
	p.calls.Add(1)
	if err != nil {
		p.failures.Add(1)
	}
	p.observe(Event{Kind: Called, Call: call, Latency: time.Since(began), Err: err})
}

// provider is a downing provider whose calls are counted.
type provider struct {
	*client.Downing
	plugin *Plugin
}

var _ downing.Provider = (*provider)(nil)

// Decide asks the active process.
func (d *provider) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	began := time.Now()
	decision, err := d.Downing.Decide(ctx, v)
	d.plugin.called("decide", began, err)
	return decision, err
}

// strategy is an allocation strategy whose calls are counted.
type strategy struct {
	*client.Allocation
	plugin *Plugin
}

var (
	_ allocation.Strategy = (*strategy)(nil)
	_ allocation.Classed  = (*strategy)(nil)
)

// Allocate asks the active process.
func (s *strategy) Allocate(ctx context.Context, r allocation.AllocateRequest) (allocation.AllocateResult, error) {
	began := time.Now()
	res, err := s.Allocation.Allocate(ctx, r)
	s.plugin.called("allocate", began, err)
	return res, err
}

// Rebalance asks the active process.
func (s *strategy) Rebalance(ctx context.Context, r allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	began := time.Now()
	res, err := s.Allocation.Rebalance(ctx, r)
	s.plugin.called("rebalance", began, err)
	return res, err
}
