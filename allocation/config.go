// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/config/field"
)

// The names of the built-in strategies in a configuration.
const (
	LeastShardName          = "least-shard"           // [LeastShard]
	LeastShardThresholdName = "least-shard-threshold" // [LeastShardThreshold]
	ConsistentHashingName   = "consistent-hashing"    // [ConsistentHashing]
	LoadAwareName           = "load-aware"            // [LoadAware]
)

// ExternalName is the name of [External] in a configuration. It is not built in: whoever makes it
// gives it its [Locations], as package cluster does with a replicated map.
const ExternalName = "external"

// BuiltIns returns the names of the built-in strategies, sorted.
func BuiltIns() []string {
	return []string{ConsistentHashingName, LeastShardName, LeastShardThresholdName, LoadAwareName}
}

// Config chooses and configures the allocation strategy of a kind of entity.
type Config struct {
	// Strategy is the name of the strategy: "least-shard", "consistent-hashing",
	// "load-aware", "least-shard-threshold", "external", or the name of one that the program adds. Names
	// that are not built in are not refused here.
	Strategy string `koanf:"strategy" known:"least-shard|consistent-hashing|load-aware|least-shard-threshold|external" reload:"yes"`
	// PreferNewestAbove says when a rolling update is far enough for all new shards to go to the
	// newest nodes, where they need not move again: when the nodes of the highest app-version have
	// more than this part of the capacity, from 0 to 1. Up to it they are canaries, which get
	// their part of the new shards and no more. 0: the first node of a new version draws all new
	// shards; 1: none ever does. Consistent-hashing does not look at versions.
	PreferNewestAbove float64 `koanf:"prefer-newest-above" unit:"part of the capacity" range:"0..1" reload:"yes"`
	// LeastShard configures least-shard, which also decides while another strategy
	// cannot answer.
	LeastShard RebalanceLimits `koanf:"least-shard" reload:"yes"`
	// ConsistentHashing configures consistent-hashing.
	ConsistentHashing RebalanceLimits `koanf:"consistent-hashing" reload:"yes"`
	// LoadAware configures load-aware.
	LoadAware LoadAwareConfig `koanf:"load-aware" reload:"yes"`
	// LeastShardThreshold configures least-shard-threshold.
	LeastShardThreshold ThresholdConfig `koanf:"least-shard-threshold" reload:"yes"`
	// External configures external, which puts shards where the replicated map of locations says.
	External RebalanceLimits `koanf:"external" reload:"yes"`
}

// RebalanceLimits bounds how many shards a strategy moves: at most max(1, min(absolute limit,
// relative limit × number of shards)) are moving at one time, including those of earlier
// rounds.
type RebalanceLimits struct {
	// RebalanceAbsoluteLimit is how many shards a round may move: 0 to 1,000,000. 0
	// switches rebalancing off, so that a node that joins gets only new shards. With a
	// large limit, one round may interrupt a large part of the entities at once.
	RebalanceAbsoluteLimit int `koanf:"rebalance-absolute-limit" unit:"shards" range:"0..1000000"`
	// RebalanceRelativeLimit is the part of all shards of the kind that a round
	// may move: above 0, up to 1.
	RebalanceRelativeLimit float64 `koanf:"rebalance-relative-limit" unit:"part of the shards" range:">0..1"`
}

// Default returns least-shard. It, consistent-hashing, load-aware and external have rounds of at most 100 shards and a
// tenth of all shards: 1,000 shards on 4 nodes are spread over a fifth node in two
// rounds, while nine of ten shards are at rest at any time. Least-shard-threshold has the
// defaults of its original: a threshold of 1, and at most 3 shards moving.
func Default() Config {
	limits := RebalanceLimits{RebalanceAbsoluteLimit: 100, RebalanceRelativeLimit: 0.1}
	return Config{
		Strategy: LeastShardName, PreferNewestAbove: DefaultPreferNewestAbove,
		LeastShard: limits, ConsistentHashing: limits,
		LoadAware:           LoadAwareConfig{Tolerance: 0.1, RebalanceLimits: limits},
		LeastShardThreshold: ThresholdConfig{RebalanceThreshold: 1, MaxSimultaneousRebalance: 3},
		External:            limits,
	}
}

// Validate returns all faults of the configuration, joined, each a
// [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Add(field.Within("least-shard", c.LeastShard.Validate()))
	faults.Add(field.Within("consistent-hashing", c.ConsistentHashing.Validate()))
	faults.Add(field.Within("load-aware", c.LoadAware.Validate()))
	faults.Add(field.Within("least-shard-threshold", c.LeastShardThreshold.Validate()))
	faults.Add(field.Within("external", c.External.Validate()))
	faults.Add(field.Ranges(c))
	faults.Refuse(c.Strategy == "", "strategy", "is empty; built in are %s", strings.Join(BuiltIns(), ", "))
	return faults.Err()
}

// Validate returns all faults of the configuration, joined, each a
// [field.Error].
func (c RebalanceLimits) Validate() error {
	return field.Ranges(c)
}

// limit is how many of the shards may be moving.
func (c RebalanceLimits) limit(shards int) int {
	relative := int(c.RebalanceRelativeLimit * float64(shards))
	return max(1, min(relative, c.RebalanceAbsoluteLimit))
}

// NewLeastShard returns least-shard as the configuration has it, whatever strategy it names.
func (c Config) NewLeastShard() (*LeastShard, error) {
	return NewLeastShard(c.LeastShard, PreferNewestAbove(c.PreferNewestAbove))
}

// New returns the built-in strategy that the configuration names, or an error:
// a fault of the configuration, or [ErrUnknownStrategy] for a name that is not
// built in, "external" included, which the caller may then look up elsewhere.
func New(c Config) (Strategy, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("allocation: %w", err)
	}
	switch c.Strategy {
	case LeastShardName:
		return c.NewLeastShard()
	case ConsistentHashingName:
		return NewConsistentHashing(c.ConsistentHashing)
	case LoadAwareName:
		return NewLoadAware(c.LoadAware, PreferNewestAbove(c.PreferNewestAbove))
	case LeastShardThresholdName:
		return NewLeastShardThreshold(c.LeastShardThreshold, PreferNewestAbove(c.PreferNewestAbove))
	default:
		return nil, fmt.Errorf("%w %q", ErrUnknownStrategy, c.Strategy)
	}
}
