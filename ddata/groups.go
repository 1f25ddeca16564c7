// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/membership"
)

// The groups of keys that a configuration means: the keys of a group have one register of
// replicas. Messages name a group by its index, so that all nodes need the same groups in the
// same order: they are sorted, and members compare them as one setting.

// keyGroup is a group of keys, as it is configured.
type keyGroup struct {
	name     string // "all", "durable", or the pattern of the keys.
	role     string
	copies   int
	durable  bool
	behind   time.Duration
	expire   time.Duration
	patterns []string // Names, and prefixes with a *; none for the group of all other keys.
}

// keyRule says which group a name, or a prefix, belongs to.
type keyRule struct {
	prefix string
	exact  bool // The whole name.
	group  uint8
}

// groupTable has the groups of a configuration, and finds the group of a key.
type groupTable struct {
	all   []keyGroup
	rules []keyRule // The longest first, names before prefixes.
}

// groupAll is the name of the group of the keys for which there is no rule, groupDurable
// that of the keys of Config.Durable. No pattern is a name, since patterns end with a *.
const (
	groupAll     = "all"
	groupDurable = "durable"
)

// keyGroups returns the groups of a valid configuration.
func (c Config) keyGroups() groupTable {
	groups := []keyGroup{{name: groupAll, role: c.Role}}
	if len(c.Durable) > 0 {
		patterns := slices.Compact(slices.Sorted(slices.Values(c.Durable)))
		groups = append(groups, keyGroup{name: groupDurable, role: c.Role, durable: true, behind: c.WriteBehind, patterns: patterns})
	}
	for _, e := range c.Expire {
		pattern := e.Prefix + "*"
		groups = append(groups, keyGroup{name: pattern, role: c.Role, expire: e.After, patterns: []string{pattern}})
	}
	for _, g := range c.Groups {
		pattern := g.Prefix + "*"
		groups = append(groups, keyGroup{
			name: pattern, role: cmp.Or(g.Role, c.Role), copies: g.Replicas, durable: g.Durable, behind: g.WriteBehind, expire: g.ExpireAfter, patterns: []string{pattern},
		})
	}
	slices.SortFunc(groups[1:], func(a, b keyGroup) int { return cmp.Compare(a.name, b.name) })
	k := groupTable{all: groups}
	for i, g := range groups {
		for _, pattern := range g.patterns {
			prefix, cut := strings.CutSuffix(pattern, "*")
			k.rules = append(k.rules, keyRule{prefix: prefix, exact: !cut, group: uint8(i)})
		}
	}
	slices.SortFunc(k.rules, func(a, b keyRule) int {
		return cmp.Or(cmp.Compare(len(b.prefix), len(a.prefix)), -compareBool(a.exact, b.exact), cmp.Compare(a.prefix, b.prefix))
	})
	return k
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// IsDurable reports whether a key survives a restart of the whole cluster, by a valid
// configuration.
func (c Config) IsDurable(key string) bool {
	k := c.keyGroups()
	return k.all[k.of(key)].durable
}

// of returns the index of the group to which a key belongs.
func (k *groupTable) of(key string) uint8 {
	for i := range k.rules {
		if r := &k.rules[i]; strings.HasPrefix(key, r.prefix) && (!r.exact || len(key) == len(r.prefix)) {
			return r.group
		}
	}
	return 0
}

// within reports whether keys of a group may begin with a prefix.
func (k *groupTable) within(group uint8, prefix string) bool {
	for i := range k.rules {
		switch r := &k.rules[i]; {
		case r.group == group && strings.HasPrefix(r.prefix, prefix):
			return true
		case !r.exact && strings.HasPrefix(prefix, r.prefix): // It holds all keys that begin so.
			return r.group == group
		}
	}
	return group == 0
}

// maxSetting is how long the value of a setting may be that members compare.
const maxSetting = 1024

// Settings returns what members compare with their own when a node joins: give it to
// [membership.WithSettings]. A node with other groups of keys is refused, for its messages
// would be about other keys.
func (c Config) Settings() []membership.Setting {
	var b strings.Builder
	for i, g := range c.keyGroups().all {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s(role=%q replicas=%d durable=%t expire=%v)", g.name, g.role, g.copies, g.durable, g.expire)
		if g.name == groupDurable {
			fmt.Fprintf(&b, "%q", g.patterns)
		}
	}
	groups := b.String()
	if len(groups) > maxSetting {
		groups = fmt.Sprintf("%d groups, sha256 %x", len(c.keyGroups().all), sha256.Sum256([]byte(groups)))
	}
	return []membership.Setting{
		{Key: "ddata.groups", Value: groups, MustEqual: true},
		{Key: "ddata.max-value-bytes", Value: fmt.Sprint(c.MaxValueBytes)},
		{Key: "ddata.lost-majority", Value: c.LostMajority},
	}
}
