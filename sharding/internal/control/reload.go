// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/machine"
)

// Reload is the command to go on with other settings: of the built-in strategy, of which
// strategy is asked, and of every kind that runs on this node. A coordinator here looks at the load
// soon after; moves that are on their way go on. The settings must be valid.
type Reload struct {
	// Allocation configures the built-in strategy, whatever strategy it names.
	Allocation allocation.Config
	// Strategy is the one to ask, as in [KindConfig]; empty for the built-in one. Only
	// the coordinator asks, so that nodes may have different ones: a coordinator elsewhere
	// goes on with its own.
	Strategy string
	// MaxSimultaneous and MaxSimultaneousPerRegion have the meaning of [KindConfig].
	MaxSimultaneous          int
	MaxSimultaneousPerRegion int
	// RebalanceIdle and SlowStart are as in [Timings].
	RebalanceIdle time.Duration
	SlowStart     time.Duration
}

// reload goes on with other settings.
func (c *Control) reload(in Reload) {
	least, err := in.Allocation.NewLeastShard()
	machine.Assert(err == nil, "the configuration of the allocation is valid", "error", err)
	c.least = least
	for _, k := range c.kinds {
		if k.host == nil {
			continue // This node does not run the kind, and has no settings of its own for it.
		}
		another := k.cfg.Strategy != in.Strategy
		k.cfg.Strategy = in.Strategy
		k.cfg.MaxSimultaneous, k.cfg.MaxSimultaneousPerRegion = in.MaxSimultaneous, in.MaxSimultaneousPerRegion
		k.timings.RebalanceIdle, k.timings.SlowStart = in.RebalanceIdle, in.SlowStart
		k.timings = k.timings.withDefaults()
		if k.coord != nil {
			k.coord.reloaded(another)
		}
	}
}
