// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"fmt"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/internal/strategy"
)

// The settings of a running system change ([System.Reload]), and with them which allocation strategy
// is asked ([System.ReloadAllocation]): both hand them to the control machine and to the router of each
// kind ([System.reload]), whose sweeper follows.

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
	to, err := s.strategy.Load().With(cfg.Allocation)
	if err != nil {
		return fmt.Errorf("sharding: %w", err)
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
	to := strategy.Given(cfg.Allocation.Strategy, a)
	if a == nil {
		var err error
		if to, err = strategy.BuiltIn(cfg.Allocation); err != nil {
			return fmt.Errorf("sharding: %w", err)
		}
	}
	return s.reload(cfg, to)
}

// reload goes on with other settings and a strategy. The caller holds mu.
func (s *System) reload(cfg Config, to *strategy.Chosen) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("sharding: %w", err)
	}
	fixed := cfg
	fixed.reload(s.cfg)
	if fixed != s.cfg {
		return fmt.Errorf("sharding: %w", ErrFixed)
	}
	from := s.strategy.Swap(to) // First, so that whoever is asked by the new name is the new one.
	err := s.control.PostWait(s.ctx, control.Reload{
		Allocation: cfg.Allocation, Strategy: to.Name(),
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
	passivateAfter := cfg.passivateAfter(r.idleLimit)
	r.region.Reload(passivateAfter, cfg.StuckAfter)
	r.region.Limit(cfg.Passivation.order(r.entityLimit))
	r.region.RecallRate(cfg.Remember.RecoveryRate)
	select {
	case <-r.intervals: // Drop an interval that the sweeper has not seen yet.
	default:
	}
	r.intervals <- runtime.SweepInterval(passivateAfter, cfg.StuckAfter)
}
