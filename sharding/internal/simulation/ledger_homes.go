// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// follow notes whether a shard is being stopped at a node. A stop ends in time, by
// the shard's having stopped or by being taken back, and is the only one of the
// shard.
func (l *Ledger) follow(node gossip.NodeID, s protocol.ShardID, stopping bool) {
	if !stopping && len(l.stops) == 0 {
		return // As nearly always.
	}
	key := stop{node, s}
	since, known := l.stops[key]
	switch {
	case stopping && !known:
		l.stops[key] = l.world.Now()
		l.budget()
		for other := range l.stops {
			if other.shard == s && other.node != node && l.mayHost(other.node) && l.mayHost(node) {
				l.violate("I21: shard %d is being stopped at %s and at %s", s, node, other.node)
			}
		}
	case !stopping && known:
		delete(l.stops, key)
		if took := l.world.Now() - since; l.stopLimit > 0 && took > l.stopLimit {
			l.violate("I21: the stop of shard %d at %s lasted for %v, more than %v", s, node, took, l.stopLimit)
		}
	}
}

// undoing is how long after a move another one back is one too many.
const undoing = 9 * time.Second

// registersWithin is how long the region of a node may take to come to its coordinator: shards may be moved a third
// time for it (docs/plugins.md, "within `rebalance.idle-check` in which no node comes").
const registersWithin = time.Minute

// arrival is a move of a shard that one coordinator has seen the end of.
type arrival struct {
	moved control.Moved
	term  protocol.Term
	at    time.Duration
	evens bool // Whether it evens out the load.
}

// moved follows the moves. One that evens out the load is not undone by the next that the same coordinator begins, and
// no shard is moved a third time by it in a short time.
func (l *Ledger) moved(coordinator gossip.NodeID, m control.Moved) {
	l.counts.Moves[m.Outcome]++
	if m.Outcome != control.OutcomeMoved {
		return
	}
	has := func(part string) bool { return strings.Contains(m.Reason, part) }
	parts := has("is leaving") || has("is drained") || has("an operator") || has("are to be in use")
	now := arrival{moved: m, term: l.leaders[coordinator], at: l.world.Now(), evens: !parts && !has("can take it no more")} // It was to go elsewhere.
	last := l.moves[m.Shard]
	l.moves[m.Shard] = [2]arrival{last[1], now}
	soon := func(of arrival) bool { return of.evens && now.evens && of.term == now.term && now.at-of.at < undoing }
	if back := last[1].moved; soon(last[1]) && back.From == m.To && back.To == m.From {
		l.violate("I21: shard %d moved from %s to %s, and back %v later: %s; %s",
			m.Shard, m.To, m.From, now.at-last[1].at, back.Reason, m.Reason)
	}
	if soon(last[0]) && soon(last[1]) && last[0].at-l.cameAt > registersWithin {
		l.violate("I21: shard %d moved three times in %v: %s; %s; %s",
			m.Shard, now.at-last[0].at, last[0].moved.Reason, last[1].moved.Reason, m.Reason)
	}
}

// homes checks what a coordinator says to have changed in its map: each shard has
// one home, at a region, and a home that it gave itself is newer than every one
// that it gave before and is given while nobody else hosts. What a region hosts is
// asked of the cells, not of the map.
func (l *Ledger) homes(coordinator gossip.NodeID, e control.HomesChanged) {
	seen := make(map[protocol.ShardID]bool)
	for _, h := range e.Homes {
		switch {
		case seen[h.Shard]:
			l.violate("I22: shard %d has two homes in one version of the map", h.Shard)
		case l.nodes[h.Node] == nil:
			l.violate("I22: the home of shard %d is %s, which has no region", h.Shard, h.Node)
		}
		seen[h.Shard] = true
		if h.Epoch.Term != e.Term {
			continue // Taken over from the report of a region.
		}
		key := termShard{h.Epoch.Born, e.Term, h.Shard}
		if h.Epoch.N <= l.given[key] {
			l.violate("I22: %s gives shard %d a home in version %d, after version %d", coordinator, h.Shard, h.Epoch.N, l.given[key])
		}
		l.given[key] = h.Epoch.N
		l.checkNoOtherHost(coordinator, h)
		l.checkTaker(coordinator, h)
	}
}

// checkTaker checks that a node can take the shard that it is given: by what the coordinator knows of the members, it
// does not leave and can be reached.
func (l *Ledger) checkTaker(coordinator gossip.NodeID, h control.Home) {
	state := membershipsim.MachineOf(l.world.Node(coordinator.Address)).State()
	switch m := state.Member(h.Node); {
	case m == nil:
		l.violate("I22: %s gives shard %d to %s, which is no member", coordinator, h.Shard, h.Node)
	case m.Status >= gossip.Leaving:
		l.violate("I22: %s gives shard %d to %s, which is %s", coordinator, h.Shard, h.Node, m.Status)
	case !state.Reachable(h.Node):
		l.violate("I22: %s gives shard %d to %s, which is unreachable", coordinator, h.Shard, h.Node)
	}
}

// checkNoOtherHost checks that no node but the new home hosts a shard.
func (l *Ledger) checkNoOtherHost(coordinator gossip.NodeID, h control.Home) {
	for node, c := range l.nodes {
		if sl := c.region.Slot(h.Shard); sl != nil && node != h.Node && l.mayHost(node) && l.mayHost(coordinator) && sl.Info().Hosting {
			l.violate("I22: %s gives shard %d to %s while %s hosts it", coordinator, h.Shard, h.Node, node)
		}
	}
}
