// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What the configuration allows at most is what the machines take at most.
func TestRangesEndWhereTheMachinesEnd(t *testing.T) {
	for key, set := range map[string]func(c *Config, more int){
		"number-of-shards":                      func(c *Config, more int) { c.NumberOfShards = protocol.MaxShards + more },
		"max-shards":                            func(c *Config, more int) { c.MaxShards = protocol.MaxKinds*protocol.MaxShards + more },
		"capacity":                              func(c *Config, more int) { c.Capacity = allocation.MaxCapacity + more },
		"snapshot-bytes":                        func(c *Config, more int) { c.SnapshotBytes = protocol.MaxSnapshotBytes + more },
		"rebalance.max-simultaneous":            func(c *Config, more int) { c.Rebalance.MaxSimultaneous = protocol.MaxShards + more },
		"rebalance.max-simultaneous-per-region": func(c *Config, more int) { c.Rebalance.MaxSimultaneousPerRegion = protocol.MaxShards + more },
		"rebalance.slow-start":                  func(c *Config, more int) { c.Rebalance.SlowStart = control.MaxAge + 1000*time.Duration(more) },
		"passivation.active-entity-limit":       func(c *Config, more int) { c.Passivation.ActiveEntityLimit = maxEntities + more },
	} {
		c := Default()
		set(&c, 0)
		require.NoError(t, c.Validate(), key)
		set(&c, 1)
		require.ErrorContains(t, c.Validate(), key+": ")
	}
}
