// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A change of the number of shards: begin begins it, upon a command, with a second layout, whose
// shards are allocated like any without a home. Then step takes the former shards one by one, as
// many at a time as may move: a home is told to stop one, and when it has, the shard is retired
// instead of getting another home. When every region knows that all are retired, the former layout
// is dropped.
//
//	former shard:  serving ──> stopping ──> open ──> retired          its entities: in the next layout
//	                  ^            │          ^
//	                  └─ resuming ─┘          └── its home is fenced
//
// Nothing else moves meanwhile: no load is evened out, and what a node that leaves has of the former layout is
// retired first.

// resharding is the part of a coordinator that changes the number of shards. What it knows is in the table.
type resharding struct{ c *coordinator }

// begin begins a change to a number of shards, or says why it does not.
func (r resharding) begin(shards uint32) (refusal string) {
	c := r.c
	present := c.table.present()
	switch {
	case shards == 0 || shards > protocol.MaxShards:
		return fmt.Sprintf("a kind has 1 to %d shards", protocol.MaxShards)
	case c.kind.cfg.OnOldest:
		return "the kind lives at one node as a whole"
	case !c.decides() || c.ending:
		return "the coordinator does not decide yet, or not any more"
	case c.control().stays():
		return allStop
	case c.table.isChanging():
		return "a change is under way: " + r.progress()
	case shards == present.Shards:
		return fmt.Sprintf("the kind has %d shards", shards)
	case c.regions.takesOver(present):
		return "the remembered entities of the number of shards before are being taken over, or the store of these did not answer yet"
	case int(present.Number) >= protocol.MaxLayouts-1:
		return "the number was changed too often since the cluster formed"
	}
	if full := c.control().exceeds(int(shards)); full != "" {
		return fmt.Sprintf("the shards of both numbers have no room (%s): %s", MaxShardsSetting, full)
	}
	if nodes := c.regions.cannotFollow(); len(nodes) > 0 {
		return "these nodes cannot follow: they are of an earlier release, or have a lease for each shard, or a part of the shards in use: " + joinSome(nodeNames(nodes), ", ")
	}
	c.moves.dropAll()
	c.table.relayout(shards)
	c.control().out.Decide("reshard", c.kind.name, "begins", fmt.Sprintf("from %d to %d shards: %s", present.Shards, shards, byOrder))
	c.evaluate()
	return ""
}

// allStop is why nothing is moved by order while the whole cluster is being shut down.
const allStop = "the whole cluster is being shut down"

// progress says in words how far the change is that is under way.
func (r resharding) progress() string {
	c := r.c
	former := c.table.former()
	return fmt.Sprintf("from %d to %d shards, and %d of the former are retired",
		former.Shards, c.table.present().Shards, int(former.Shards)-c.table.remaining())
}

// step takes the next step of a change of the number of shards.
func (r resharding) step() {
	c := r.c
	if !c.table.isChanging() {
		return
	}
	for _, id := range c.table.retirable() {
		c.moves.drop(id)
		c.table.retire(id, r.why())
		c.end(id, OutcomeRetired)
	}
	held := c.regions.heldByAll()
	untold := c.table.spread(held)
	switch {
	case untold == 0 && c.table.remaining() == 0:
		r.complete()
	case !c.ending && c.table.isToldBy(held) && !c.table.hasHomeless():
		r.stopFormer(c.kind.cfg.simultaneous() - c.moves.underWay() - untold)
	}
}

// complete ends a change: nobody needs the former layout any more.
func (r resharding) complete() {
	c := r.c
	former := c.table.former()
	c.table.forgo()
	c.control().out.Decide("reshard", c.kind.name, "ends", fmt.Sprintf("from %d to %d shards: every region knows that the former are retired",
		former.Shards, c.table.present().Shards))
	c.rounds.arm(rebalanceGather)
}

// stopFormer has at most a number of former shards stopped, as many of each region as may move; those
// of regions that hand back all that they have come first, and more at a time.
func (r resharding) stopFormer(room int) {
	c := r.c
	parting, busy := c.regions.departing(), c.moves.leaving()
	o := newCommands()
	for _, urgent := range []bool{true, false} {
		for _, id := range c.table.formerServing() {
			home := c.table.home(id)
			most := c.kind.cfg.perRegion()
			if parts := parting[home] != ""; parts != urgent {
				continue
			} else if parts {
				most *= waveFactor
			}
			if !urgent && room <= 0 || busy[home] >= most {
				continue
			}
			busy[home]++
			room--
			c.beginMove(id, move{from: home, reason: r.why(), handBack: true})
			c.table.addCommand(id, o)
		}
	}
	o.send(c.env)
}

// why says in words why a former shard is retired.
func (r resharding) why() string {
	c := r.c
	return fmt.Sprintf("retired, not moved: the kind gets %d shards instead of %d", c.table.present().Shards, c.table.former().Shards)
}

// admit registers a region, or refuses it. One that goes by the map that it holds need not be
// configured for the number of shards that the kind has now.
func (r resharding) admit(from gossip.NodeID, reg Registration, goesByMap bool) bool {
	c := r.c
	settings := reg.Settings
	switch {
	case !c.table.changes.began:
	case !reg.Follows:
		c.kind.send(from, SettingsRefused{
			Kind: c.kind.name, Setting: "number-of-shards", Coordinator: fmt.Sprintf("%d, changed while the kind runs", c.table.present().Shards),
			Region: fmt.Sprintf("%d, and this node cannot follow changes", settings.Shards),
		})
		return false
	case c.table.accepts(settings.Shards, goesByMap):
		settings.Shards = c.kind.settings.Shards
	}
	return c.regions.admit(from, reg, settings)
}

// isToldBy reports whether regions that hold a version of the map know of the layouts in force.
func (t *table) isToldBy(version uint64) bool {
	return !t.changes.untold && t.changes.at != 0 && version >= t.changes.at
}

// formerServing returns the former shards whose stop may begin.
func (t *table) formerServing() (ids []protocol.ShardID) {
	for id := range t.shards.all() {
		if t.isFormer(id) && t.movable(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// leaving returns how many shards are on their way from each region.
func (ms *moves) leaving() map[gossip.NodeID]int {
	from := map[gossip.NodeID]int{}
	for _, m := range ms.active { //quorate:unordered a count
		from[m.from]++
	}
	return from
}

// cannotFollow returns the nodes, sorted, that do not know what to do when the number of shards
// changes: regions, and nodes that may coordinate the kind without running it.
func (r *regions) cannotFollow() []gossip.NodeID {
	unable := map[gossip.NodeID]bool{}
	for node := range r.peers { //quorate:unordered each entry by itself
		if !r.hasRegion(node) && !r.followers[node] {
			unable[node] = true
		}
	}
	for node, reg := range r.registrations { //quorate:unordered each entry by itself
		if !reg.Follows {
			unable[node] = true
		}
	}
	return sortedNodes(unable)
}
