// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What a node is told about a kind: Settings, which all nodes must have equal, and KindConfig
// with the Timings, which are this node's own. Validate checks them before the kind runs.

// Settings are the settings of a kind that all nodes must have equal. The coordinator
// compares them with its own when a region registers.
type Settings struct {
	// Shards is the number of shards, from 1 to [protocol.MaxShards].
	Shards uint32
	// Hash names the function from ids to shards, which is [protocol.HashName].
	Hash string
	// Codec names the encoding of the messages.
	Codec string
	// Role is the role that a node needs to host the kind or to coordinate it;
	// empty for none.
	Role string
	// Hosting says in words under which rule the kind is hosted; empty at a node that hosts nothing, or does not say,
	// which goes with any.
	Hosting string
	// OnStuck and Handoff are [KindConfig.OnStuck] and [Timings.Handoff] in words: those of the coordinator decide
	// how many instances of a stuck entity may run, also at hosts that say otherwise. Empty goes with any.
	OnStuck, Handoff string
}

// HostingOf returns the text of [Settings.Hosting]: of two nodes with different rules one would not keep that of the
// other.
func HostingOf(leases, onOldest, inPart bool) string {
	var rules []string
	for _, r := range [...]struct {
		is   bool
		rule string
	}{{leases, "a lease for each shard"}, {onOldest, "on the oldest node"}, {inPart, "a part of the shards in use"}} {
		if r.is {
			rules = append(rules, r.rule)
		}
	}
	return cmp.Or(strings.Join(rules, ", "), "any node, all shards")
}

// Difference returns the refusal of a region with the settings o by a coordinator with
// the settings s, which names the first setting that differs. False: all are equal.
func (s Settings) Difference(kind string, o Settings) (SettingsRefused, bool) {
	for _, p := range [...][3]string{
		{"number-of-shards", strconv.FormatUint(uint64(s.Shards), 10), strconv.FormatUint(uint64(o.Shards), 10)},
		{"hash", s.Hash, o.Hash},
		{"codec", s.Codec, o.Codec},
		{"role", s.Role, o.Role},
		{"hosting", cmp.Or(s.Hosting, o.Hosting), cmp.Or(o.Hosting, s.Hosting)},
		{"on-stuck", cmp.Or(s.OnStuck, o.OnStuck), cmp.Or(o.OnStuck, s.OnStuck)},
		{"handoff-timeout", cmp.Or(s.Handoff, o.Handoff), cmp.Or(o.Handoff, s.Handoff)},
	} {
		if p[1] != p[2] {
			return SettingsRefused{Kind: kind, Setting: p[0], Coordinator: p[1], Region: p[2]}, true
		}
	}
	return SettingsRefused{}, false
}

// validate returns the first fault of settings that came from elsewhere.
func (s Settings) validate() error {
	switch {
	case s.Shards == 0 || s.Shards > protocol.MaxShards:
		return fmt.Errorf("number of shards %d, want 1 to %d", s.Shards, protocol.MaxShards)
	case max(len(s.Hash), len(s.Codec), len(s.Role), len(s.Hosting), len(s.OnStuck), len(s.Handoff)) > protocol.MaxKindBytes:
		return fmt.Errorf("a setting is longer than %d bytes", protocol.MaxKindBytes)
	case !gossip.IsName(s.Hash + s.Codec + s.Role + s.Hosting + s.OnStuck + s.Handoff):
		return errors.New("a setting is not UTF-8, or has characters that do not print")
	default:
		return nil
	}
}

// KindConfig is what a node is told about a kind of entity.
type KindConfig struct {
	// Name names the kind in the cluster; 1 to [protocol.MaxKindBytes] bytes.
	Name string
	// Settings must be equal on all nodes.
	Settings Settings
	// Proxy says that this node sends to the kind and hosts nothing of it.
	Proxy bool
	// MinRegions is how many regions suffice for the first allocation. With 0 or 1, and
	// while fewer regions register, the first allocation waits for [Timings.Settle].
	MinRegions int
	// Capacity is the share of the shards that this region can bear, relative to
	// the others. 0 counts as 1.
	Capacity uint32
	// Strategy names a strategy that must be asked by a [machine.Call] of the port
	// [AllocationCall]. Empty: the built-in least-shard, called directly.
	Strategy string
	// Fixed says that the number of shards cannot be changed while the kind runs, since it says what runs, or
	// since shards have leases.
	Fixed bool
	// OnOldest keeps all shards at one region, whatever Strategy says: the oldest that could be
	// given shards when no region had any.
	OnOldest bool
	// MaxSimultaneous bounds the shards of the kind that are on the move to even
	// out the load, at one time. Default 32.
	MaxSimultaneous int
	// MaxSimultaneousPerRegion bounds the shards on the move that come from, or go to,
	// one region. Default 4. A region that leaves hands back eight times as many at one
	// time.
	MaxSimultaneousPerRegion int
	// Scale is how many of the first shards are in use until a coordinator says otherwise, see [Scale]. 0:
	// all are, and that never changes.
	Scale uint32
	// Lease has each shard of the kind hosted only while this node holds a lease for it, see [AskLease].
	Lease bool
	// Remembers says that entities of the kind are remembered, see [TakenOver].
	Remembers bool
	// OnStuck says what becomes of a move when entities of the shard do not stop in time.
	OnStuck OnStuck
	// Timings are the times of the protocol. Zero fields have their defaults.
	Timings Timings
}

// OnStuck says what becomes of a move whose shard does not stop within
// [Timings.Handoff], because an entity of it does not return.
type OnStuck uint8

// The ways to go on.
const (
	// OnStuckAbort takes the stop back: the shard stays where it is, and the move is
	// tried again later. It is the default.
	OnStuckAbort OnStuck = iota
	// OnStuckAbandon gives the entities up: their contexts have ended, what they
	// still answer is discarded, they never begin another message, and the shard
	// moves. Until such an entity returns, its code runs beside that of its
	// successor, which only the epoch tells apart.
	OnStuckAbandon
)

// String returns the name of the way in configurations.
func (o OnStuck) String() string {
	switch o {
	case OnStuckAbort:
		return "abort"
	case OnStuckAbandon:
		return "abandon"
	default:
		return "none"
	}
}

// Timings are the times of the protocol of a kind. The zero value of a field
// means its default.
type Timings struct {
	// Retry is the time after which a request without an answer is repeated, by
	// regions and coordinators. Default 1 s.
	Retry time.Duration
	// Settle is how long after the registration of a region the shards of a kind
	// are allocated for the first time, if no other registers. Default 3 s.
	Settle time.Duration
	// Handoff is how long the home of a shard may take to stop it before the
	// move is called off. Default 60 s.
	Handoff time.Duration
	// Call is how long the strategy may take. Default 5 s.
	Call time.Duration
	// RebalanceIdle is how often a coordinator looks whether the load is even when
	// nothing else makes it look. Default 10 s.
	RebalanceIdle time.Duration
	// SlowStart is the time over which the part of a region that joins others rises to all
	// that it can bear, at most [MaxAge]. 0, the default: it has its whole part at once.
	SlowStart time.Duration
	// HandOver is how long a coordinator whose node leaves may take to stop before that
	// is reported; no other takes over before it has stopped. Default 10 s.
	HandOver time.Duration
}

func (t Timings) withDefaults() Timings {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&t.Retry, time.Second)
	def(&t.Settle, 3*time.Second)
	def(&t.Handoff, time.Minute)
	def(&t.Call, 5*time.Second)
	def(&t.RebalanceIdle, 10*time.Second)
	def(&t.HandOver, 10*time.Second)
	return t
}

// Validate returns all faults of the configuration, joined.
func (c KindConfig) Validate() error {
	var errs []error
	if c.Name == "" || len(c.Name) > protocol.MaxKindBytes || !gossip.IsName(c.Name) {
		errs = append(errs, fmt.Errorf("kind %q: the name must have 1 to %d bytes of UTF-8, of characters that print", c.Name, protocol.MaxKindBytes))
	}
	if err := c.Settings.validate(); err != nil {
		errs = append(errs, fmt.Errorf("kind %q: %w", c.Name, err))
	}
	if c.Scale > c.Settings.Shards {
		errs = append(errs, fmt.Errorf("kind %q: %d of %d shards are to be in use", c.Name, c.Scale, c.Settings.Shards))
	}
	if c.MinRegions < 0 {
		errs = append(errs, fmt.Errorf("kind %q: min regions %d is negative", c.Name, c.MinRegions))
	}
	if c.MaxSimultaneous < 0 || c.MaxSimultaneousPerRegion < 0 {
		errs = append(errs, fmt.Errorf("kind %q: a bound of moves is negative", c.Name))
	}
	if c.OnStuck > OnStuckAbandon {
		errs = append(errs, fmt.Errorf("kind %q: %d is no way to go on with stuck entities", c.Name, c.OnStuck))
	}
	t := c.Timings
	if t.Retry < 0 || t.Settle < 0 || t.Handoff < 0 || t.Call < 0 || t.RebalanceIdle < 0 || t.HandOver < 0 || t.SlowStart < 0 {
		errs = append(errs, fmt.Errorf("kind %q: a time is negative", c.Name))
	}
	return errors.Join(errs...)
}
