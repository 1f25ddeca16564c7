// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Where shards without a home go: allocate gathers them, and asks the strategy, or has the
// built-in one decide, about a request; place takes the answer over. Last are the texts by
// which the decisions are logged.

// allocate finds homes for the shards that have none, in one batch for those that lost
// theirs within a moment, and next homes for the shards of regions that leave or are drained.
func (c *coordinator) allocate() {
	if c.strategy.isAsked() || c.gather == gatherWaiting {
		return
	}
	pending := c.pending()
	if len(pending) == 0 || len(c.regions.eligible()) == 0 {
		return
	}
	if c.gather == gatherIdle && c.table.isHomeless(protocol.ShardID(pending[0].Shard)) {
		c.gather.wait(c.env, c.now().Add(allocationGather))
		return
	}
	builtIn := c.kind.cfg.OnOldest || c.kind.cfg.Strategy == "" || c.strategy.passedOver() || c.ending
	if !builtIn && c.now() < c.strategy.mayAsk {
		c.gather.wait(c.env, c.strategy.mayAsk)
		return
	}
	if n := c.control().place(len(pending)); n < len(pending) {
		c.gather.wait(c.env, c.now().Add(allocationGather))
		if pending = pending[:n]; n == 0 {
			return
		}
	}
	c.flush() // So that the request describes one version of the map.
	req := c.request(pending)
	if c.kind.cfg.OnOldest {
		c.place(req, c.onOldest(req), oldestName)
		return
	}
	if builtIn {
		c.strategy.stale = 0
		c.place(req, c.control().least.DecideAllocate(req), allocation.LeastShardName)
		return
	}
	c.strategy.ask(call{allocate: &req}, c.view())
}

// oldestName names the rule of [KindConfig.OnOldest] in decisions.
const oldestName = "oldest"

// onOldest answers a request by that rule. Some region is eligible.
func (c *coordinator) onOldest(req allocation.AllocateRequest) (res allocation.AllocateResult) {
	node, reason := c.oldestHome()
	for _, p := range req.Shards {
		res.Placements = append(res.Placements, allocation.Placement{Shard: p.Shard, Region: regionID(node), Reason: reason})
	}
	return res
}

// oldestHome returns where a kind of that rule lives, and why: at the region that has most of it, or
// is to have it, so that it does not move for nothing; else at the oldest. Some region is eligible.
func (c *coordinator) oldestHome() (node gossip.NodeID, reason string) {
	eligible := c.regions.eligible()
	homes := c.table.byRegion(func(id protocol.ShardID) gossip.NodeID {
		if to := c.moves.target(id); !to.IsZero() {
			return to
		}
		return c.table.home(id)
	})
	node = slices.MinFunc(eligible, func(a, b gossip.NodeID) int {
		st := c.control().state
		return cmp.Or(len(homes[b])-len(homes[a]), st.Member(a).Age().Compare(st.Member(b).Age()))
	})
	if n := len(homes[node]); n > 0 {
		return node, fmt.Sprintf("%s has %d others already", node, n)
	}
	return node, fmt.Sprintf("%s is the oldest of %d that can host it", node, len(eligible))
}

// wait has shards without a home wait until a time: for others, or for the strategy.
func (g *gather) wait(s env, until machine.Instant) {
	*g = gatherWaiting
	s.control().out.Arm(gatherTimer{s.kind.name}, until)
}

// gathered allocates the shards that were gathered.
func (c *coordinator) gathered() {
	c.gather = gatherPassed
	if c.evaluate(); c.gather == gatherPassed {
		c.gather = gatherIdle
	}
}

// pending returns the shards that should be given homes now: all shards without a home,
// ahead of their first message, and those of regions that leave or are drained.
func (c *coordinator) pending() []allocation.Pending {
	if !c.regions.suffices(!c.table.isPopulated()) {
		return nil
	}
	pending := c.table.homeless()
	for _, id := range c.departingShards() {
		pending = append(pending, allocation.Pending{Shard: allocation.Shard(id)})
	}
	return pending
}

// request describes the regions to a strategy. A shard that is to move, or on its
// way, is listed with the region to which it goes; a shard that is asked about is listed
// with none.
func (c *coordinator) request(pending []allocation.Pending) allocation.AllocateRequest {
	asked := make(map[protocol.ShardID]bool, len(pending))
	for _, p := range pending {
		asked[protocol.ShardID(p.Shard)] = true
	}
	owner := func(id protocol.ShardID) gossip.NodeID {
		if asked[id] {
			return gossip.NodeID{}
		}
		if to := c.moves.target(id); !to.IsZero() {
			return to
		}
		return c.table.home(id)
	}
	return allocation.AllocateRequest{
		Kind: c.kind.name, Shards: pending, Fitness: c.regions.fitness(), Regions: c.regions.states(c.table.byRegion(owner)),
	}
}

// place takes over the homes of an answer that was checked, and returns how many homes it
// took over. A shard that still has a home moves to the new one in its turn.
func (c *coordinator) place(req allocation.AllocateRequest, res allocation.AllocateResult, strategy string) (homes int) {
	nodes, parting := c.regions.nodesByRegion(), c.regions.departing()
	counts, handed := map[gossip.NodeID]int{}, map[gossip.NodeID]int{}
	for _, p := range res.Placements {
		id, node := protocol.ShardID(p.Shard), nodes[p.Region]
		home := c.table.home(id)
		switch {
		case node.IsZero():
			continue
		case home.IsZero():
			c.giveHome(id, node, because(strategy, p.Reason))
		case c.table.serves(home, id) && parting[home] != "":
			handed[home]++
			c.moves.planMove(id, home, node, parting[home]+"; "+because(strategy, p.Reason))
		default:
			continue
		}
		counts[node]++
		homes++
	}
	for _, node := range sortedNodes(handed) {
		c.control().out.Decide("handoff", c.kind.name, "stop",
			fmt.Sprintf("%s %s and hosts %d shards", node, parting[node], handed[node]))
	}
	if len(counts) > 0 {
		c.control().out.Decide("allocation", fmt.Sprintf("%s: %d shards", c.kind.name, len(res.Placements)), homesText(counts),
			strategy+": "+reasonsText(res.Placements, strategy))
	}
	if len(res.Placements) < len(req.Shards) && res.Reason != "" {
		c.control().out.DecideOften("allocation", c.kind.name, "incomplete", res.Reason)
	}
	return homes
}

// textParts is how many nodes or reasons a decision names.
const textParts = 5

// homesText says in words how many shards each node gets.
func homesText(counts map[gossip.NodeID]int) string {
	parts := make([]string, 0, len(counts))
	for _, node := range sortedNodes(counts) {
		parts = append(parts, fmt.Sprintf("%d to %s", counts[node], node))
	}
	return joinSome(parts, ", ")
}

// reasonsText joins the different reasons of a batch, each without the name of the
// strategy with which it may begin.
func reasonsText(placements []allocation.Placement, strategy string) string {
	var parts []string
	for _, p := range placements {
		if r := strings.TrimPrefix(p.Reason, strategy+": "); r != "" && !slices.Contains(parts, r) && len(parts) <= textParts {
			parts = append(parts, r)
		}
	}
	if len(parts) == 0 {
		return "it gave no reason"
	}
	return joinSome(parts, "; ")
}

func joinSome(parts []string, separator string) string {
	if len(parts) > textParts {
		parts = append(parts[:textParts:textParts], "and more")
	}
	return strings.Join(parts, separator)
}
