// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/machine"
)

// maxStale is how often in a row an answer of the strategy may be discarded since
// the view has changed, before the built-in strategy decides.
const maxStale = 3

// call is a question to a strategy that may block. At most one is in flight.
type call struct {
	id      machine.CallID
	request allocation.AllocateRequest
	view    uint64 // Digest of the request's view.
	stale   int
}

// allocate gives homes to shards that wait for one, all that came together within
// a moment in one batch.
func (c *coordinator) allocate() {
	if c.call.id != 0 || c.gather == gatherWaiting {
		return
	}
	pending := c.pending()
	if len(pending) == 0 || len(c.eligible()) == 0 {
		return
	}
	if c.gather == gatherIdle {
		c.gather = gatherWaiting
		c.control().out.Arm(gatherTimer{c.kind.name}, c.now().Add(allocationGather))
		return
	}
	c.flush() // So that the request describes one version of the map.
	req := c.request(pending)
	if c.kind.cfg.Strategy == "" || c.call.stale >= maxStale {
		c.call.stale = 0
		c.place(req, c.control().least.DecideAllocate(req), allocation.LeastShardName)
		return
	}
	c.control().calls++
	c.call = call{id: c.control().calls, request: req, view: c.view(), stale: c.call.stale}
	limit := c.kind.timings.Call
	c.control().out.Add(machine.Call{
		ID: c.call.id, Kind: AllocationCall, Limit: limit,
		Request: req,
	})
	c.control().out.Arm(callTimer{c.kind.name}, c.now().Add(limit))
}

// gathered allocates what came together.
func (c *coordinator) gathered() {
	c.gather = gatherPassed
	c.evaluate()
	c.gather = gatherIdle
}

// pending returns the shards that should be given homes now: all that have none,
// ahead of their first message. Only in the beginning, when no shard has ever had
// a home, regions are waited for, so that the first does not get everything.
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
				Shard: allocation.Shard(i), Requester: regionID(c.wanted[ShardID(i)]),
			})
		}
	}
	return pending
}

func regionID(n gossip.NodeID) allocation.Region {
	if n.IsZero() {
		return ""
	}
	return allocation.Region(n.String())
}

// request describes the regions to a strategy.
func (c *coordinator) request(pending []allocation.Pending) allocation.AllocateRequest {
	st := c.control().state
	shards := c.byRegion()
	req := allocation.AllocateRequest{Kind: c.kind.name, Shards: pending, Fitness: c.fitness()}
	for _, node := range sortedNodes(c.regions) {
		m, r := st.Member(node), c.regions[node]
		if m == nil || r.reg.Proxy {
			continue
		}
		req.Regions = append(req.Regions, allocation.RegionState{
			ID: regionID(node), Zone: m.Zone, Roles: m.Roles, Version: m.AppVersion,
			Leaving: !c.kind.couldTake(m), Suspended: r.reg.Suspended, Unreachable: !st.Reachable(node),
			Capacity: r.reg.Capacity, Shards: shards[node],
		})
	}
	slices.SortFunc(req.Regions, func(a, b allocation.RegionState) int {
		switch {
		case a.ID < b.ID:
			return -1
		case a.ID > b.ID:
			return 1
		}
		return 0
	})
	return req
}

// byRegion returns the shards of each region in the order in which they came.
func (c *coordinator) byRegion() map[gossip.NodeID][]allocation.Shard {
	all := map[gossip.NodeID][]allocation.Shard{}
	for i := range c.shards {
		if home := c.shards[i].home; !home.IsZero() {
			all[home] = append(all[home], allocation.Shard(i))
		}
	}
	for _, list := range all { //quorate:unordered each list by itself
		slices.SortStableFunc(list, func(a, b allocation.Shard) int {
			return c.shards[a].epoch.Compare(c.shards[b].epoch)
		})
	}
	return all
}

func (c *coordinator) fitness() allocation.Fitness {
	f := allocation.Fitness{OneVersion: true, NoneJoining: true}
	st := c.control().state
	version, first := "", true
	for _, m := range st.Members() {
		if m.Status < gossip.Up {
			f.NoneJoining = false
		}
		if c.regions[m.Node] == nil {
			continue
		}
		f.OneVersion = f.OneVersion && (first || version == m.AppVersion)
		version, first = m.AppVersion, false
	}
	f.NoneUnreachable = len(st.Unreachable()) == 0
	return f
}

// view is a digest of what an answer depends on: who may be given shards, and
// which version of the map the request described.
func (c *coordinator) view() uint64 {
	h := c.n
	for _, node := range c.eligible() {
		for _, b := range []byte(node.String()) {
			h = (h ^ uint64(b)) * 1099511628211
		}
	}
	return h
}

// called takes the answer of a strategy.
func (c *coordinator) called(in machine.Called) {
	if c.call.id == 0 || in.ID != c.call.id {
		return
	}
	asked := c.call
	c.call = call{stale: asked.stale}
	c.control().out.Disarm(callTimer{c.kind.name})
	if c.view() != asked.view {
		c.call.stale++
		c.evaluate()
		return
	}
	c.call.stale = 0
	res, ok := in.Result.(allocation.AllocateResult)
	err := in.Err
	switch {
	case err == nil && !ok:
		err = fmt.Errorf("the answer is a %T", in.Result)
	case err == nil:
		err = allocation.CheckAllocate(&asked.request, &res)
	}
	if err != nil {
		c.fallBack(err.Error())
		return
	}
	c.place(asked.request, res, c.kind.cfg.Strategy)
}

// callTimeout lets the built-in strategy decide; a late answer is ignored.
func (c *coordinator) callTimeout() {
	if c.call.id == 0 {
		return
	}
	c.call = call{}
	c.fallBack("it did not answer in time")
}

func (c *coordinator) fallBack(why string) {
	c.control().out.Decide("allocation", c.kind.name, allocation.LeastShardName,
		fmt.Sprintf("strategy %s: %s", c.kind.cfg.Strategy, why))
	c.call.stale = maxStale
	c.evaluate()
}

// place takes over the homes of an answer that was checked.
func (c *coordinator) place(req allocation.AllocateRequest, res allocation.AllocateResult, strategy string) {
	nodes := map[allocation.Region]gossip.NodeID{}
	for node := range c.regions { //quorate:unordered each entry by itself
		nodes[regionID(node)] = node
	}
	counts := map[gossip.NodeID]int{}
	epoch := Epoch{Born: c.born, Term: c.term, N: c.n + 1}
	for _, p := range res.Placements {
		s, node := &c.shards[p.Shard], nodes[p.Region]
		if !s.home.IsZero() || node.IsZero() {
			continue
		}
		if !s.travelling {
			s.base, s.positions = epoch, nil
		}
		s.home, s.epoch, s.phase = node, epoch, PhaseStarting
		c.changed[ShardID(p.Shard)], c.toHost[ShardID(p.Shard)] = true, true
		delete(c.wanted, ShardID(p.Shard))
		c.populated = true
		counts[node]++
	}
	if len(counts) > 0 {
		c.control().out.Decide("allocation", fmt.Sprintf("%s: %d shards", c.kind.name, len(res.Placements)), homesText(counts),
			strategy+": "+reasonsText(res.Placements, strategy))
	}
	if len(res.Placements) < len(req.Shards) && res.Reason != "" {
		c.control().out.Decide("allocation", c.kind.name, "incomplete", res.Reason)
	}
}

// textParts is how many nodes or reasons a decision names.
const textParts = 5

// homesText says how many shards each node gets.
func homesText(counts map[gossip.NodeID]int) string {
	parts := make([]string, 0, len(counts))
	for _, node := range sortedNodes(counts) {
		parts = append(parts, fmt.Sprintf("%d to %s", counts[node], node))
	}
	return joinSome(parts, ", ")
}

// reasonsText joins the different reasons of a batch, without the name of the
// strategy that some begin with.
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
