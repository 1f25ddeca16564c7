// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Where shards without a home go: allocate gathers them, and asks the strategy, or has the
// built-in one decide, about a request; place takes the answer over. Last are the texts by
// which the decisions are logged.

// allocate finds homes for the shards that have none, in one batch for those that lost
// theirs within a moment, and next homes for the shards of regions that leave.
func (c *coordinator) allocate() {
	if c.call.id != 0 || c.gather == gatherWaiting {
		return
	}
	pending := c.pending()
	if len(pending) == 0 || len(c.eligible()) == 0 {
		return
	}
	if c.gather == gatherIdle && c.shards[pending[0].Shard].home.IsZero() {
		c.gather = gatherWaiting
		c.control().out.Arm(gatherTimer{c.kind.name}, c.now().Add(allocationGather))
		return
	}
	c.flush() // So that the request describes one version of the map.
	req := c.request(pending)
	if c.kind.cfg.Strategy == "" || c.call.stale >= maxStale || c.ending {
		c.call.stale = 0
		c.place(req, c.control().least.DecideAllocate(req), allocation.LeastShardName)
		return
	}
	c.ask(call{allocate: &req, stale: c.call.stale})
}

// gathered allocates the shards that were gathered.
func (c *coordinator) gathered() {
	c.gather = gatherPassed
	c.evaluate()
	c.gather = gatherIdle
}

// pending returns the shards that should be given homes now: all shards without a home,
// ahead of their first message, and those of regions that leave. Only in the
// beginning, when no shard has ever had a home, further regions are waited for, so that the
// first region does not get all shards.
func (c *coordinator) pending() []allocation.Pending {
	hosts := 0
	for _, r := range c.regions { //quorate:unordered a count
		if !r.reg.Proxy {
			hosts++
		}
	}
	enough := c.kind.cfg.MinRegions > 1 && hosts >= c.kind.cfg.MinRegions
	if hosts == 0 || !c.populated && !enough && c.now() < c.settleAt {
		return nil
	}
	var pending []allocation.Pending
	for i := range c.shards {
		if c.shards[i].home.IsZero() {
			pending = append(pending, allocation.Pending{
				Shard: allocation.Shard(i), Requester: regionID(c.wanted[protocol.ShardID(i)]),
			})
		}
	}
	for _, id := range c.leaversShards() {
		pending = append(pending, allocation.Pending{Shard: allocation.Shard(id)})
	}
	return pending
}

func regionID(n gossip.NodeID) allocation.Region {
	if n.IsZero() {
		return ""
	}
	return allocation.Region(n.String())
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
		if p, ok := c.plans[id]; ok {
			return p.to
		}
		if m := c.moves[id]; m != nil && !m.to.IsZero() {
			return m.to
		}
		return c.shards[id].home
	}
	return allocation.AllocateRequest{Kind: c.kind.name, Shards: pending, Fitness: c.fitness(), Regions: c.regionStates(owner)}
}

// fitness says whether this is a good time to move shards. A joining member that is
// unreachable is left out: it hosts nothing, and may stay unreachable for long.
func (c *coordinator) fitness() allocation.Fitness {
	f := allocation.Fitness{OneVersion: true, NoneJoining: true, NoneUnreachable: true}
	st := c.control().state
	version, first := "", true
	for _, m := range st.Members() {
		newcomer, reached := m.Status < gossip.Up, st.Reachable(m.Node)
		f.NoneUnreachable = f.NoneUnreachable && (newcomer || reached)
		if newcomer && reached && m.HasService(uint16(protocol.Service)) && m.HasRole(c.kind.settings.Role) {
			f.NoneJoining = false // The joining member is about to run a region.
		}
		if c.regions[m.Node] == nil {
			continue
		}
		f.OneVersion = f.OneVersion && (first || gossip.CompareVersions(version, m.AppVersion) == 0)
		version, first = m.AppVersion, false
	}
	return f
}

// fitnessDigest returns a number that differs between any two values of f.
func fitnessDigest(f allocation.Fitness) uint64 {
	var h uint64 = 1
	for _, is := range [...]bool{f.OneVersion, f.NoneUnreachable, f.NoneJoining} {
		h <<= 1
		if is {
			h |= 1
		}
	}
	return h
}

// place takes over the homes of an answer that was checked, and returns how many homes it
// took over. A shard that still has a home moves to the new one in its turn.
func (c *coordinator) place(req allocation.AllocateRequest, res allocation.AllocateResult, strategy string) (homes int) {
	nodes := c.nodesByRegion()
	counts, leaving := map[gossip.NodeID]int{}, map[gossip.NodeID]int{}
	for _, p := range res.Placements {
		id, node := protocol.ShardID(p.Shard), nodes[p.Region]
		s := &c.shards[id]
		switch {
		case node.IsZero():
			continue
		case s.home.IsZero():
			c.settle(id, node, because(strategy, p.Reason))
		case s.phase == PhaseServing && c.isLeaving(s.home):
			leaving[s.home]++
			c.intend(id, node, because(strategy, p.Reason))
		default:
			continue
		}
		counts[node]++
		homes++
	}
	for _, node := range sortedNodes(leaving) {
		c.control().out.Decide("handoff", c.kind.name, "stop", fmt.Sprintf("%s is leaving and hosts %d shards", node, leaving[node]))
	}
	if len(counts) > 0 {
		c.control().out.Decide("allocation", fmt.Sprintf("%s: %d shards", c.kind.name, len(res.Placements)), homesText(counts),
			strategy+": "+reasonsText(res.Placements, strategy))
	}
	if len(res.Placements) < len(req.Shards) && res.Reason != "" {
		c.control().out.Decide("allocation", c.kind.name, "incomplete", res.Reason)
	}
	return homes
}

// nodesByRegion returns the nodes of the regions by the names that strategies use.
func (c *coordinator) nodesByRegion() map[allocation.Region]gossip.NodeID {
	nodes := map[allocation.Region]gossip.NodeID{}
	for node := range c.regions { //quorate:unordered each entry by itself
		nodes[regionID(node)] = node
	}
	return nodes
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
