// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/recall"
)

// RememberConfig says how the entities of kinds that remember them ([Kind.Remember]) come back, and how their
// store is called. It holds for each kind and node.
type RememberConfig struct {
	// RecoveryRate is how many entities begin in a second without a message, since their shard has come to
	// this node, up to 10,000,000. An entity to which a message comes begins at once. 0: all begin at once.
	RecoveryRate int `koanf:"recovery-rate" unit:"entities per second" range:"0..10000000" reload:"yes"`

	// Calls is how many calls of the store are under way at a time, 1 to 4,096.
	Calls int `koanf:"calls" unit:"calls" range:"1..4096"`

	// CallTimeout bounds one call of the store, above 0. A call that takes longer has failed.
	CallTimeout time.Duration `koanf:"call-timeout" range:">0s.."`

	// Batch is how many ids of a shard one call changes at most, 1 to 10,000.
	Batch int `koanf:"batch" unit:"ids" range:"1..10000"`

	// RetryMin is the pause after a call of the store that has failed, above 0; it doubles up to RetryMax,
	// and other shards go on.
	RetryMin time.Duration `koanf:"retry-min" range:">0s.."`

	// RetryMax is the longest pause after calls of the store that have failed, at least RetryMin.
	RetryMax time.Duration `koanf:"retry-max" range:">0s.."`

	// FirstLimit is how long the first message to an entity waits for the store, if the kind says that it
	// waits ([Kind.RememberFirst]), above 0. When a call fails after that the message is refused.
	FirstLimit time.Duration `koanf:"first-limit" range:">0s.."`
}

// defaultRemember returns the default of the group.
func defaultRemember() RememberConfig {
	return RememberConfig{
		RecoveryRate: 10_000, Calls: 32, CallTimeout: 10 * time.Second, Batch: 1000,
		RetryMin: 100 * time.Millisecond, RetryMax: 10 * time.Second, FirstLimit: 15 * time.Second,
	}
}

// validate reports every fault.
func (c RememberConfig) validate() error {
	var faults field.Faults
	faults.Add(field.Ranges(c))
	faults.Relate(c.RetryMax < c.RetryMin, "retry-max", "retry-min", "%v is below retry-min, which is %v", c.RetryMax, c.RetryMin)
	return faults.Err()
}

// desk returns the meaning of the configuration for a kind.
func (c RememberConfig) desk(first bool) recall.Config {
	return recall.Config{
		Rate: c.RecoveryRate, Calls: c.Calls, Batch: c.Batch, First: first,
		Limit: c.FirstLimit, RetryMin: c.RetryMin, RetryMax: c.RetryMax, Fault: protocol.EntityFault,
	}
}
