// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/ddata/internal/table"
)

// The configuration: the settings of all keys, then those of keys by their names (see
// groups.go for what is made of them), and their validation.

// Config is what an operator may set. Start from [Default]. Durable, Expire, Groups and Role
// are the same on all nodes: members compare them when a node joins, see [Config.Settings].
type Config struct {
	// Role is the role of the nodes that hold data. Other nodes read and write through
	// them. Empty: every node holds data.
	Role string `koanf:"role"`

	// GossipInterval is how often a replica compares what it holds with another one, above
	// 0: what was lost on its way is found by that.
	GossipInterval time.Duration `koanf:"gossip-interval" range:">0s.."`

	// SpreadInterval is how long local updates wait at most before they are sent, above 0:
	// those of the meantime travel together. An update of a higher level is sent at once.
	SpreadInterval time.Duration `koanf:"spread-interval" range:">0s.."`

	// SweepInterval is how often replicas agree upon which tombstones of deleted keys can
	// be forgotten, above 0.
	SweepInterval time.Duration `koanf:"sweep-interval" range:">0s.."`

	// NotifyInterval is the shortest time between two values of one key that a
	// subscriber is told, 0 or more: changes in between are told together.
	NotifyInterval time.Duration `koanf:"notify-interval" range:"0s.."`

	// MaxValueBytes bounds one value, 1 to 1 GiB. An update beyond it fails.
	MaxValueBytes int `koanf:"max-value-bytes" unit:"bytes" range:"1..1073741824"`

	// MaxBytes bounds the memory that the data of this node takes, for each group of keys
	// (see Groups), at least 1 MiB. An update beyond it fails.
	MaxBytes int64 `koanf:"max-bytes" unit:"bytes" range:"1048576.."`

	// Durable are the keys that survive a restart of the whole cluster, by name, or by the
	// beginning of the name with a * behind it. They need a store, see [WithStore].
	Durable []string `koanf:"durable"`

	// WriteBehind is after which time a change of the keys in Durable is on disk, from 0 to 1 m.
	// 0: before it is acknowledged. Otherwise changes are acknowledged before that, and what was
	// acknowledged within twice the time is lost if so many nodes crash at once that no majority
	// of the replicas is left; a crash of fewer loses nothing. A node that has crashed does not
	// count until it has taken in what the others hold.
	WriteBehind time.Duration `koanf:"write-behind" range:"0s..1m"`

	// WriteBehindBytes is how much may be acknowledged and not on disk, for each group of keys
	// with a write-behind, from 64 KiB to 1 GiB. Beyond it acknowledgements wait for the disk.
	WriteBehindBytes int64 `koanf:"write-behind-bytes" unit:"bytes" range:"65536..1073741824"`

	// Expire are the keys that vanish when they were not changed for a time.
	Expire []ExpireConfig `koanf:"expire"`

	// Groups are the keys with settings of their own. A key belongs to the longest of the
	// names and prefixes in Durable, Expire and Groups that fits it.
	Groups []GroupConfig `koanf:"groups"`

	// LostMajority says what happens to keys in memory when so many of their nodes were removed that no majority is
	// left, or can come back: go-on, with what the nodes hold that are left, or wait, for an operator who accepts the
	// loss. With a number of replicas the same holds for the keys whose replicas are lost. What is durable waits in any
	// case.
	LostMajority string `koanf:"lost-majority" oneof:"go-on|wait"`

	// Dir is the directory of the durable keys. Empty: the directory ddata below
	// node.data-dir.
	Dir string `koanf:"dir"`
}

// ExpireConfig says when keys expire. They are held in memory, by all nodes that hold data.
type ExpireConfig struct {
	// Prefix is how the names of the keys begin, at least 1 byte.
	Prefix string `koanf:"prefix"`
	// After is the time without a change after which a key expires, at least 1 s.
	After time.Duration `koanf:"after" range:"1s.."`
}

// GroupConfig has the settings of keys whose names begin alike.
type GroupConfig struct {
	// Prefix is how the names of the keys begin, at least 1 byte.
	Prefix string `koanf:"prefix"`
	// Replicas is how many nodes hold each key, 0 to 64, spread over the zones. 0: every
	// node that holds data.
	Replicas int `koanf:"replicas" unit:"nodes" range:"0..64"`
	// Role is the role of the nodes that hold the keys. Empty: that of ddata.role.
	Role string `koanf:"role"`
	// Durable says that the keys survive a restart of the whole cluster.
	Durable bool `koanf:"durable"`
	// WriteBehind is what ddata.write-behind is for other durable keys, from 0 to 1 m.
	WriteBehind time.Duration `koanf:"write-behind" range:"0s..1m"`
	// ExpireAfter is the time without a change after which a key expires, 0 or at least
	// 1 s. 0: never.
	ExpireAfter time.Duration `koanf:"expire-after" range:"0s.."`
}

// Default returns the default configuration: every node holds every key in memory.
func Default() Config {
	return Config{
		GossipInterval: time.Second,
		SpreadInterval: 100 * time.Millisecond,
		SweepInterval:  10 * time.Second,
		NotifyInterval: 200 * time.Millisecond,
		MaxValueBytes:  16 << 20,
		MaxBytes:       1 << 30,

		WriteBehindBytes: 16 << 20,
		LostMajority:     lostGoOn,
	}
}

// The values of Config.LostMajority.
const (
	lostGoOn = "go-on"
	lostWait = "wait"
)

const (
	maxGroups = 64 // Rules for keys; a message has room for 256 groups.
)

// Validate reports every fault in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Add(field.Ranges(c))
	faults.Refuse(c.LostMajority != lostGoOn && c.LostMajority != lostWait, "lost-majority", "%q is neither %s nor %s", c.LostMajority, lostGoOn, lostWait)
	rules := len(c.Expire) + len(c.Groups)
	faults.Refuse(rules > maxGroups, "groups", "%d in expire and groups together are more than %d", rules, maxGroups)
	c.validateNames(&faults)
	return faults.Err()
}

// validateNames adds the faults of the settings that are about names of keys.
func (c Config) validateNames(faults *field.Faults) {
	seen := map[string]string{}
	name := func(key, pattern, prefix string) {
		faults.Refuse(prefix == "" || len(prefix) > table.MaxKey, key, "%q is not a text of 1 to %d bytes", prefix, table.MaxKey)
		other, twice := seen[pattern]
		faults.Refuse(twice, key, "%q is in %s already", pattern, other)
		seen[pattern] = key
	}
	for i, pattern := range c.Durable {
		name(fmt.Sprintf("durable.[%d]", i), pattern, strings.TrimSuffix(pattern, "*"))
	}
	for i, e := range c.Expire {
		at := fmt.Sprintf("expire.[%d].", i)
		name(at+"prefix", e.Prefix+"*", e.Prefix)
		faults.Add(field.Within(at[:len(at)-1], field.Ranges(e)))
	}
	for i, g := range c.Groups {
		at := fmt.Sprintf("groups.[%d].", i)
		name(at+"prefix", g.Prefix+"*", g.Prefix)
		faults.Add(field.Within(at[:len(at)-1], field.Ranges(g)))
		faults.Relate(g.WriteBehind > 0 && !g.Durable, at+"write-behind", at+"durable", "%v, and durable is not true: the keys are not on disk", g.WriteBehind)
		faults.Refuse(g.ExpireAfter > 0 && g.ExpireAfter < time.Second, at+"expire-after", "%v is neither 0 nor at least 1s", g.ExpireAfter)
	}
}
