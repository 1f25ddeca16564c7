// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/runtime"
)

// Reload goes on with other settings: the group rebalance, the group
// allocation.least-shard, passivate-after and stuck-after, whose fields carry the
// tag reload:"yes". Kinds that run take the new values over at once, and moves that are
// on their way go on. The error says that a value is not valid, that any other
// setting differs from that of [New], or that the system has ended; no setting has
// changed then.
func (s *System) Reload(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("sharding: %w", err)
	}
	fixed := cfg
	fixed.reload(s.cfg)
	if fixed != s.cfg {
		return fmt.Errorf("sharding: %w", ErrFixed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.control.PostWait(s.ctx, control.Reload{
		LeastShard:      cfg.Allocation.LeastShard,
		MaxSimultaneous: cfg.Rebalance.MaxSimultaneous, MaxSimultaneousPerRegion: cfg.Rebalance.MaxSimultaneousPerRegion,
		RebalanceIdle: cfg.Rebalance.IdleCheck,
	})
	if err != nil {
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
	c.Rebalance, c.Allocation.LeastShard = from.Rebalance, from.Allocation.LeastShard
	c.PassivateAfter, c.StuckAfter = from.PassivateAfter, from.StuckAfter
}

// reload gives the cells and the sweeper of a kind the times of another configuration.
func (r *router) reload(cfg Config) {
	passivateAfter := passivateAfter(r.idleLimit, cfg)
	r.region.Reload(passivateAfter, cfg.StuckAfter)
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
