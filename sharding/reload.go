// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/runtime"
)

// The settings of a running system change ([System.Reload]), and with them which allocation strategy
// is asked ([System.ReloadAllocation]): both hand them to the control machine and to the router of each
// kind ([System.reload]), whose sweeper follows ([router.sweep]).

// Reload goes on with other settings: the groups rebalance, allocation and passivation, passivate-after, stuck-after
// and remember.recovery-rate. Their fields carry the tag reload:"yes", as does the strategy, which
// [System.ReloadAllocation] changes. Kinds that run take the new values over at once, and moves that are on their way
// go on. The error says that a value is not valid, that any other setting differs from that of [New], or that the
// system has ended; no setting has changed then.
func (s *System) Reload(cfg Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cfg.Allocation.Strategy != s.latest.Allocation.Strategy {
		return fmt.Errorf("sharding: allocation.strategy: %w, or use ReloadAllocation", ErrFixed)
	}
	to := *s.strategy.Load()
	if to.builtIn {
		var err error
		if to, err = choose(cfg.Allocation); err != nil {
			return fmt.Errorf("sharding: %w", err)
		}
	}
	return s.reload(cfg, to)
}

// ReloadAllocation is [System.Reload] with another allocation strategy: that of the configuration
// if a is nil, and then it is built in, and otherwise a under the name in the configuration, as with
// [WithAllocation]. The coordinator asks it from its next question on. A question that the strategy
// before has in hand is still answered by it, for 5 s at most, so it must stay usable for as long.
// Nodes may have different strategies for a while: only that of the coordinator is asked.
func (s *System) ReloadAllocation(cfg Config, a allocation.Strategy) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := chosenStrategy{name: cfg.Allocation.Strategy, strategy: a}
	if a == nil {
		var err error
		if to, err = choose(cfg.Allocation); err != nil {
			return fmt.Errorf("sharding: %w", err)
		}
	}
	return s.reload(cfg, to)
}

// chosenStrategy is the allocation strategy that is asked by calls of the control machine; without a
// strategy least-shard decides in the machine.
type chosenStrategy struct {
	name     string
	strategy allocation.Strategy
	builtIn  bool // The strategy was made from the configuration, and is made anew with it.
}

// choose returns the built-in strategy that a configuration names; the error of another name wraps
// [allocation.ErrUnknownStrategy].
func choose(cfg allocation.Config) (chosenStrategy, error) {
	a := chosenStrategy{name: cfg.Strategy, builtIn: true}
	if cfg.Strategy == allocation.LeastShardName {
		return a, nil
	}
	var err error
	if a.strategy, err = allocation.New(cfg); errors.Is(err, allocation.ErrUnknownStrategy) {
		err = &field.Error{Key: "sharding.allocation.strategy", Err: err, Reason: fmt.Sprintf(
			"%q is neither built in (%s) nor the name of a plugin, and the program gives none by WithAllocation: write the name of one that there is, or add a plugin to the section plugins",
			cfg.Strategy, strings.Join(allocation.BuiltIns(), ", "))}
	}
	return a, err
}

// named is the name for the control machine, empty for least-shard.
func (a chosenStrategy) named() string {
	if a.strategy == nil {
		return ""
	}
	return a.name
}

// present is the strategy to ask.
func (a chosenStrategy) present() allocation.Strategy {
	if a.strategy == nil {
		return replaced{}
	}
	return a.strategy
}

// errReplaced is the answer of [replaced].
var errReplaced = errors.New("another strategy has taken its place")

// replaced stands for a strategy that was in use when a question was put, and is not when it is
// asked, because the built-in one decides: it has no answer, and the machine goes on with that.
type replaced struct{}

// Allocate has no answer.
func (replaced) Allocate(context.Context, allocation.AllocateRequest) (allocation.AllocateResult, error) {
	return allocation.AllocateResult{}, errReplaced
}

// Rebalance has no answer.
func (replaced) Rebalance(context.Context, allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	return allocation.RebalanceResult{}, errReplaced
}

// reload goes on with other settings and a strategy. The caller holds mu.
func (s *System) reload(cfg Config, to chosenStrategy) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("sharding: %w", err)
	}
	fixed := cfg
	fixed.reload(s.cfg)
	if fixed != s.cfg {
		return fmt.Errorf("sharding: %w", ErrFixed)
	}
	from := s.strategy.Swap(&to) // First, so that whoever is asked by the new name is the new one.
	err := s.control.PostWait(s.ctx, control.Reload{
		Allocation: cfg.Allocation, Strategy: to.named(),
		MaxSimultaneous: cfg.Rebalance.MaxSimultaneous, MaxSimultaneousPerRegion: cfg.Rebalance.MaxSimultaneousPerRegion,
		RebalanceIdle: cfg.Rebalance.IdleCheck, SlowStart: cfg.Rebalance.SlowStart,
	})
	if err != nil {
		s.strategy.Store(from)
		return s.closed()
	}
	s.latest = cfg
	for _, r := range *s.routers.Load() {
		r.reload(cfg)
	}
	return nil
}

// reload takes over from another configuration the settings that may change.
func (c *Config) reload(from Config) {
	c.Rebalance, c.Allocation = from.Rebalance, from.Allocation
	c.PassivateAfter, c.StuckAfter, c.Passivation = from.PassivateAfter, from.StuckAfter, from.Passivation
	c.Remember.RecoveryRate = from.Remember.RecoveryRate
}

// reload gives the cells and the sweeper of a kind the times of another configuration.
func (r *router) reload(cfg Config) {
	passivateAfter := passivateAfter(r.idleLimit, cfg)
	r.region.Reload(passivateAfter, cfg.StuckAfter)
	r.region.Limit(cfg.Passivation.order(r.entityLimit))
	r.region.RecallRate(cfg.Remember.RecoveryRate)
	select {
	case <-r.intervals: // Drop an interval that the sweeper has not seen yet.
	default:
	}
	r.intervals <- runtime.SweepInterval(passivateAfter, cfg.StuckAfter)
}

// passivateAfter returns the time after which idle entities of a kind are passivated, 0
// for never. The kind's own time, if not 0, takes precedence over the configured time.
func passivateAfter(own time.Duration, cfg Config) time.Duration {
	if own == 0 {
		return cfg.PassivateAfter
	}
	return max(own, 0)
}

// sweep looks at all entities of a kind at each interval until ctx ends: one timer
// serves all entities.
func (r *router) sweep(ctx context.Context) {
	every := r.interval
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case every = <-r.intervals:
		case <-timer.C:
		}
		r.region.Sweep(func() bool { return ctx.Err() != nil })
		timer.Reset(every)
	}
}
