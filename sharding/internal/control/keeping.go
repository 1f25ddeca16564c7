// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What other members can make a node keep, and how much of it one step may do. of finds what the node keeps
// of the kind of a message, or begins to keep it if there is room; shards counts against the bound; forget drops
// kinds that nobody runs any more. The kinds that the node runs itself are its own program's: they always have room
// here, and the program is refused what exceeds the bound before they come.

// Bounds of one step, and of what is kept without use.
const (
	// stepShards is how many shards are given homes in one step, over all kinds: a home costs a command, an entry of
	// the map for each region, and a route. The others follow after allocationGather.
	stepShards = 4096
	// forgetAfter is how long a kind is kept that no node runs any more.
	forgetAfter = time.Minute
)

// of returns what the node keeps of the kind of a message. Only messages after which something has to be kept begin
// that, while there is room. Without room, and for all other messages about a kind that is not kept, it returns a
// kind that is dropped after the message: what hosts nothing obeys nothing, and needs no promise.
func (c *Control) of(m Message) *perKind {
	name := m.KindName()
	if k := c.kind(name); k != nil {
		return k
	}
	switch m.(type) {
	case Query, Register, SingletonMessage:
		if name != "" && len(name) <= protocol.MaxKindBytes && c.foreign() < protocol.MaxKinds {
			return c.ensure(name)
		}
	}
	return &perKind{control: c, name: name}
}

// foreign counts the kinds that the node keeps and does not run.
func (c *Control) foreign() (n int) {
	for _, k := range c.kinds {
		if k.host == nil {
			n++
		}
	}
	return n
}

// Kept returns how many kinds the node keeps that it does not run, and how many shards in all kinds.
func (c *Control) Kept() (kinds, shards int) { return c.foreign(), c.shards() }

// keeps reports whether the kind is one of those that the node keeps.
func (k *perKind) keeps() bool { return k.control.kind(k.name) == k }

// shards returns how many shards the node keeps, or may have to keep as the coordinator, in all kinds.
func (c *Control) shards() (n int) {
	for _, k := range c.kinds {
		n += k.shards()
	}
	return n
}

func (k *perKind) shards() int {
	switch {
	case k.coord != nil:
		return k.coord.table.shards.len()
	case k.core != nil:
		return int(k.settings.Shards)
	default:
		return 0
	}
}

// exceeds says in words why the node keeps no further shards; empty if it has room for them.
func (c *Control) exceeds(more int) string {
	if have := c.shards(); have+more > c.cfg.MaxShards {
		return fmt.Sprintf("at most %d in all kinds, of which %d are in use", c.cfg.MaxShards, have)
	}
	return ""
}

// MaxShardsSetting and MaxKindsSetting name the bounds in a [SettingsRefused] of a kind for which the coordinator has
// no room.
const (
	MaxShardsSetting = "max-shards"
	MaxKindsSetting  = "kinds"
)

// admits makes the settings of a kind known by which a member registers, if there is room for it. Otherwise the
// member is told why not, and asks again for as long as its region lives.
func (k *perKind) admits(from gossip.NodeID, s Settings) bool {
	if k.core != nil || s.validate() != nil {
		return k.keeps()
	}
	refusal := SettingsRefused{Kind: k.name, Setting: MaxShardsSetting, Region: fmt.Sprint(s.Shards), Coordinator: k.control.exceeds(int(s.Shards))}
	if !k.keeps() {
		refusal.Setting, refusal.Coordinator, refusal.Region = MaxKindsSetting, fmt.Sprintf("at most %d", protocol.MaxKinds), "one more"
	}
	if refusal.Coordinator == "" {
		k.learnSettings(s, Timings{})
		return true
	}
	k.send(from, refusal)
	return false
}

// fits reports whether there is room for the layouts of a report; otherwise its region is refused, and the
// coordinator waits for it. Layouts of which the region of this node has heard from a coordinator before have room.
func (r resharding) fits(from gossip.NodeID, layouts []protocol.Layout) bool {
	c, more := r.c, 0
	known := c.table.shards.layouts()
	if h := c.kind.host; h != nil {
		known = append(known, h.homes.layouts()...)
	}
	for _, l := range layouts {
		if !slices.Contains(known, l) {
			more += int(l.Shards)
		}
	}
	full := c.control().exceeds(more)
	if more == 0 || full == "" {
		return true
	}
	c.kind.send(from, SettingsRefused{Kind: c.kind.name, Setting: MaxShardsSetting, Coordinator: full, Region: fmt.Sprint(more)})
	return false
}

// forget drops the kinds that no node has run for a time. The terms of a kind that comes back are above those that
// it has had here, and so are its epochs.
func (c *Control) forget() {
	c.kinds = slices.DeleteFunc(c.kinds, func(k *perKind) bool {
		switch {
		case !k.unused():
			k.unusedSince = 0
		case k.unusedSince == 0:
			k.unusedSince = c.now.Mono
		case c.now.Mono.Sub(k.unusedSince) >= forgetAfter && !k.isOutranked():
			if k.coord != nil {
				c.out.Decide("coordinator", k.name, "forgotten", fmt.Sprintf("no node has run the kind for %v", forgetAfter))
				k.stopCoordinator()
			}
			if k.core != nil {
				c.starts = max(c.starts, k.core.Term().Start)
			}
			return true
		}
		return false
	})
}

// unused reports whether nobody needs what this node keeps of a kind: it does not run the kind, and neither does any
// other as far as the coordinator here knows.
func (k *perKind) unused() bool {
	switch {
	case k.host != nil:
		return false
	case k.coord != nil:
		return k.coord.regions.isEmpty() && !k.coord.ending && len(k.coord.passedOver) == 0
	case k.core != nil && (k.core.Phase() == singleton.Becoming || k.core.Phase() == singleton.HandingOver || k.core.Asked()):
		return false
	}
	return true
}

// isOutranked reports whether a member could coordinate with a lower term than was promised: then the promise counts.
func (k *perKind) isOutranked() bool {
	return k.control.state != nil && slices.ContainsFunc(k.control.state.Members(), func(m *gossip.Member) bool {
		return m.UpNumber > 0 && m.HasService(uint16(protocol.Service)) && m.HasRole(k.settings.Role) && m.Age().Compare(k.promise.Age()) < 0
	})
}

// place returns how many of some shards may be given homes in this step.
func (c *Control) place(pending int) int {
	n := min(pending, stepShards-c.placed)
	c.placed += n
	return n
}
