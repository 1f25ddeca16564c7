// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/passivation"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/remembering"
)

// What a file may set for sharding: Config with its groups and what they mean, Default, and Validate,
// which says all faults together.

// Config is what an operator may set. Start from [Default].
type Config struct {
	// NumberOfShards is the number of shards of kinds that give no number, 1 to
	// 65,536. All nodes need the same number. In a cluster that runs it is changed by
	// [System.Reshard], after which a file may have any number that the kind has had; a file alone
	// changes it only while the whole cluster is stopped.
	NumberOfShards int `koanf:"number-of-shards" unit:"shards" range:"1..65536"`

	// MaxShards bounds the shards of all kinds together that a node keeps: of the kinds that it runs, and of those that
	// other members have registered and that it coordinates. 1 to 67,108,864; each takes up to 512 bytes there. A kind
	// beyond it is refused ([ErrNoRoom]), and so is a change to a number of shards for which there is no room.
	MaxShards int `koanf:"max-shards" unit:"shards" range:"1..67108864"`

	// Capacity is the part of the shards that this node can bear, beside those of the others: a
	// node with 4 gets twice the shards of a node with 2. 1 to 1,048,576; for the strategy
	// load-aware in proportion to the processors, if these differ between nodes.
	Capacity int `koanf:"capacity" unit:"relative to the other nodes" range:"1..1048576"`

	// Allocation says how shards are given to nodes.
	Allocation allocation.Config `koanf:"allocation"`

	// MailboxSize bounds the messages that wait for one entity, at least 1: senders of
	// further messages wait until half of the mailbox is handled. Messages that other
	// nodes have on their way when the mailbox becomes full, at most two windows of each,
	// come on top.
	MailboxSize int `koanf:"mailbox-size" unit:"messages" range:"1..16777216"`

	// WindowBytes bounds the messages that one node has sent to one shard without an
	// acknowledgement, at least 4 KiB. Tell waits when this window is full.
	WindowBytes int `koanf:"window-bytes" unit:"bytes" range:"4096..1073741824"`

	// TransitBytes bounds the messages that wait on a node for a shard that is on its
	// way between two homes, at least 4 KiB. Messages beyond the bound are sent again
	// by their origin.
	TransitBytes int `koanf:"transit-bytes" unit:"bytes" range:"4096..1073741824"`

	// MaxMessageBytes bounds one encoded message, 1 to 3,145,728. A message to an entity of the same node is not
	// encoded, and has no bound.
	MaxMessageBytes int `koanf:"max-message-bytes" unit:"bytes" range:"1..3145728"`

	// SnapshotBytes bounds the memory that one entity takes along when its shard moves, see
	// [Snapshotter], up to 1,048,576. 0: none takes any.
	SnapshotBytes int `koanf:"snapshot-bytes" unit:"bytes" range:"0..1048576"`

	// SnapshotShardBytes bounds the memory that all entities of one shard take along together, with
	// their ids and 64 bytes for each, up to 3,145,728. What is sent at a time must have room in a
	// frame: keep it 128 KiB below transport.max-frame-bytes. 0: none takes any.
	SnapshotShardBytes int `koanf:"snapshot-shard-bytes" unit:"bytes" range:"0..3145728"`

	// RetryInterval is the time after which an unanswered request between
	// regions and coordinator is repeated, above 0.
	RetryInterval time.Duration `koanf:"retry-interval" range:">0s.."`

	// HandoffTimeout is how long a shard may take to stop before OnStuck says how its
	// move goes on, above 0.
	HandoffTimeout time.Duration `koanf:"handoff-timeout" range:">0s.."`

	// OnStuck says what becomes of a move whose shard does not stop in time,
	// because an entity does not return: "abort" takes the stop back, and "abandon"
	// gives the entity up, which may then still run beside its successor. A kind can
	// say otherwise.
	OnStuck string `koanf:"on-stuck" oneof:"abort|abandon"`

	// Rebalance bounds the moves that even out the load.
	Rebalance RebalanceConfig `koanf:"rebalance" reload:"yes"`

	// EntityRestartBackoff is how long an entity that could not start, or that
	// failed twice in a row, fails its messages before the next try, the first
	// time; it doubles up to thirty times that. Above 0.
	EntityRestartBackoff time.Duration `koanf:"entity-restart-backoff" range:">0s.."`

	// PassivateAfter is the time without a message after which an entity is
	// stopped; the next message starts it again. Entities are looked at every quarter
	// of that time, and every 15 s at least. 0: never.
	PassivateAfter time.Duration `koanf:"passivate-after" range:"0s.." reload:"yes"`

	// Passivation bounds how many entities of a kind a node has.
	Passivation PassivationConfig `koanf:"passivation" reload:"yes"`

	// Remember says how remembered entities come back, and how their store is called.
	Remember RememberConfig `koanf:"remember"`

	// Leases has the entities of each shard run only while their node holds a lease of the shard, see [WithLeases].
	// All nodes that host have the same.
	Leases LeasesConfig `koanf:"leases"`

	// StuckAfter is how long an entity may take for one message, for its start or for
	// its stop before it is reported. 0: for ever.
	StuckAfter time.Duration `koanf:"stuck-after" range:"0s.." reload:"yes"`
}

// RebalanceConfig bounds the moves of shards of one kind that even out the load
// after a node has joined. Rounds of moves follow each other at once.
type RebalanceConfig struct {
	// MaxSimultaneous is how many shards are on the move at one time, 1 to 65,536.
	MaxSimultaneous int `koanf:"max-simultaneous" unit:"shards" range:"1..65536"`

	// MaxSimultaneousPerRegion is how many shards on the move come from, or go to, one
	// node, 1 to 65,536. A node that leaves hands back eight times as many at one time.
	MaxSimultaneousPerRegion int `koanf:"max-simultaneous-per-region" unit:"shards" range:"1..65536"`

	// SlowStart is the time over which the part of the shards of a node that joins rises, from a
	// tenth, to all that it can bear: up to 1h. Its caches and pools then warm up under a part of
	// the load. A step of it takes IdleCheck at least. 0: a node has its whole part at once, as have
	// all nodes that start while none has run for that time.
	SlowStart time.Duration `koanf:"slow-start" range:"0s..1h"`

	// IdleCheck is how often the coordinator looks whether the load is even when
	// nothing else makes it look, above 0.
	IdleCheck time.Duration `koanf:"idle-check" range:">0s.."`
}

// PassivationConfig bounds the entities of one kind that a node has in memory. The bound is one for
// all shards of the kind. Entities that are at work, or hold a timer, are not stopped for it, nor are those
// that are permanent, which do not count.
type PassivationConfig struct {
	// ActiveEntityLimit is how many entities of a kind may be active on a node, at most
	// 268,435,456. When one more starts, another one is told to stop. 0: no limit.
	ActiveEntityLimit int `koanf:"active-entity-limit" unit:"entities" range:"0..268435456"`

	// Policy says which one is stopped: that which was not used for the longest time
	// ("least-recently-used"), or used last ("most-recently-used"), or least often
	// ("least-frequently-used"); "segmented", which protects what was used twice; "composite", a window
	// before one of these four; or "w-tinylfu", which follows most patterns of use by itself. A
	// use is that an entity is taken up for one message or several.
	Policy string `koanf:"policy" oneof:"w-tinylfu|least-recently-used|most-recently-used|segmented|least-frequently-used|composite"`

	// Main is the policy behind the window of "composite".
	Main string `koanf:"main" oneof:"least-recently-used|most-recently-used|segmented|least-frequently-used"`

	// Protected is the part of the entities that "segmented" protects, above 0 and below 1; also in
	// "w-tinylfu", and in "composite" with it.
	Protected float64 `koanf:"protected" unit:"part of the limit" range:">0..<1"`

	// Window is the part of the entities that have just come, 0 to 1: of "composite", and of
	// "w-tinylfu" at first, which enlarges it as the hit rate tells.
	Window float64 `koanf:"window" unit:"part of the limit" range:"0..1"`

	// Aging has "least-frequently-used" forget what was used often long ago.
	Aging bool `koanf:"aging"`
}

// maxEntities is the largest limit of entities.
const maxEntities = 1 << 28

// order returns the meaning of the configuration for a kind. The kind's own limit, if not 0, takes
// precedence. The configuration is valid.
func (c PassivationConfig) order(own int) passivation.Config {
	if own != 0 {
		c.ActiveEntityLimit = max(own, 0)
	}
	policy, _ := passivation.Parse(c.Policy)
	main, _ := passivation.Parse(c.Main)
	return passivation.Config{
		Limit: c.ActiveEntityLimit, Policy: policy, Main: main, Protected: c.Protected, Window: c.Window, Aging: c.Aging,
	}
}

// validate reports every fault.
func (c PassivationConfig) validate() error {
	var faults field.Faults
	faults.Add(field.Ranges(c))
	_, err := passivation.Parse(c.Policy)
	faults.Refuse(err != nil, "policy", "%v", err)
	main, err := passivation.Parse(c.Main)
	faults.Refuse(err != nil, "main", "%v", err)
	faults.Refuse(err == nil && main.Windowed(), "main", "%q has a window itself", c.Main)
	return faults.Err()
}

// stuckPolicy returns the meaning of a value of [Config.OnStuck], or of [Kind.OnStuck].
func stuckPolicy(name string) (control.OnStuck, bool) {
	for _, p := range [...]control.OnStuck{control.OnStuckAbort, control.OnStuckAbandon} {
		if p.String() == name {
			return p, true
		}
	}
	return 0, false
}

// Default returns the default configuration.
func Default() Config {
	return Config{
		NumberOfShards:  1000,
		MaxShards:       protocol.DefaultMaxShards,
		Capacity:        1,
		Allocation:      allocation.Default(),
		MailboxSize:     1000,
		WindowBytes:     256 << 10,
		TransitBytes:    256 << 10,
		MaxMessageBytes: 1 << 20,
		SnapshotBytes:   64 << 10, SnapshotShardBytes: 256 << 10,
		RetryInterval:  time.Second,
		HandoffTimeout: time.Minute,
		OnStuck:        control.OnStuckAbort.String(),
		Rebalance: RebalanceConfig{
			MaxSimultaneous: 32, MaxSimultaneousPerRegion: 4, IdleCheck: 10 * time.Second,
		},
		EntityRestartBackoff: time.Second,
		PassivateAfter:       2 * time.Minute,
		Passivation: PassivationConfig{
			Policy: passivation.WTinyLFU.String(), Main: passivation.Segmented.String(), Protected: 0.8, Window: 0.01, Aging: true,
		},
		StuckAfter: time.Minute,
		Remember:   defaultRemember(),
		Leases:     LeasesConfig{Config: lease.Default()},
	}
}

// Validate reports every fault in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Add(field.Ranges(c))
	faults.Add(field.Within("rebalance", field.Ranges(c.Rebalance)))
	_, known := stuckPolicy(c.OnStuck)
	faults.Refuse(!known, "on-stuck", "%q is neither abort nor abandon", c.OnStuck)
	faults.Add(field.Within("passivation", c.Passivation.validate()))
	faults.Add(field.Within("remember", c.Remember.validate()))
	faults.Add(field.Within("leases", c.Leases.Validate()))
	faults.Add(field.Within("allocation", c.Allocation.Validate()))
	return faults.Err()
}

// passivateAfter returns the time after which idle entities of a kind are passivated, 0 for never. The kind's own time,
// if not 0, takes precedence over the configured time.
func (c Config) passivateAfter(own time.Duration) time.Duration {
	if own == 0 {
		return c.PassivateAfter
	}
	return max(own, 0)
}

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

// remembering returns the meaning of the configuration for a kind.
func (c RememberConfig) remembering(first bool) remembering.Config {
	return remembering.Config{
		Rate: c.RecoveryRate, Calls: c.Calls, Batch: c.Batch, First: first,
		Timeout: c.FirstLimit, RetryMin: c.RetryMin, RetryMax: c.RetryMax, Fault: protocol.EntityFault,
	}
}

// LeasesConfig says which store gives the leases of shards, and how they are held.
type LeasesConfig struct {
	// Store is the kind of the store: "file" for the nodes of one machine, "etcd" or "kubernetes", or the name of
	// another one that the program adds by the option cluster.WithLeases. The settings of the store are the section
	// "lease-NAME" of the file. Empty: shards have no leases, but for those of [WithLeases].
	Store string `koanf:"store" known:"file|etcd|kubernetes"`

	// Config says how long a lease lasts, and when it is renewed.
	lease.Config `koanf:",squash"`
}
