// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// How the load is evened out: watch and the timer say when to look; rebalanceOnce asks the
// strategy, unless shards without a home come first; move begins the moves of its answer;
// followUp asks again when half of them have ended. Last is what a request tells a strategy.

// rebalanceGather is how long a coordinator waits after the regions have changed before
// it evens out the load: nodes often join together.
const rebalanceGather = 100 * time.Millisecond

// rebalance says how far a coordinator has come in evening out the load.
type rebalance struct {
	armed machine.Instant // When the timer fires; 0: it is not armed.
	due   bool            // The strategy should be asked as soon as nothing else comes first.
	seen  uint64          // The digest of the regions and the fitness, a change of which is a reason to ask.
	asked int             // The number of moves under way after the last answer.

	// The moves of the present run of rounds that have ended, by outcome, and when the run
	// began.
	moved, calledOff, lost int
	since                  machine.Instant
}

// ended notes the end of a move.
func (e *rebalance) ended(how Outcome) {
	switch how {
	case OutcomeMoved:
		e.moved++
	case OutcomeCalledOff:
		e.calledOff++
	case OutcomeLost:
		e.lost++
	}
}

// watch arms the timer when regions or members have changed in a way that is a reason to
// ask the strategy: a region came, or can be given shards again.
func (c *coordinator) watch() {
	h := fitnessDigest(c.fitness())
	for _, node := range c.eligible() {
		h = mix(h, node.String())
	}
	switch {
	case h != c.rebalance.seen:
		c.rebalance.seen = h
		c.armRebalance(rebalanceGather)
	case c.rebalance.armed == 0:
		c.armRebalance(c.kind.timings.RebalanceIdle)
	}
}

// armRebalance arms the timer to fire after a time, unless it fires earlier anyway.
func (c *coordinator) armRebalance(after time.Duration) {
	at := c.now().Add(after)
	if c.rebalance.armed == 0 || at < c.rebalance.armed {
		c.rebalance.armed = at
		c.control().out.Arm(rebalanceTimer{c.kind.name}, at)
	}
}

// rebalanceFired looks whether the load is even, and arms the timer for the next look.
func (c *coordinator) rebalanceFired() {
	c.rebalance.armed, c.rebalance.due = 0, true
	c.armRebalance(c.kind.timings.RebalanceIdle)
	c.evaluate()
}

// followUp asks the strategy again when half of the moves that were under way after
// its last answer have ended, so that rounds follow each other.
func (c *coordinator) followUp() {
	if c.rebalance.asked > 0 && 2*len(c.moves) <= c.rebalance.asked {
		c.rebalance.asked, c.rebalance.due = 0, true
	}
	if c.rebalance.due {
		c.rebalanceOnce()
	}
}

// rebalanceOnce asks the strategy what should move, unless something else comes first:
// shards without a home, regions that leave, a call under way.
func (c *coordinator) rebalanceOnce() {
	if c.ending || c.call.id != 0 || c.unsettled() {
		return
	}
	c.rebalance.due = false
	if len(c.eligible()) < 2 {
		return
	}
	c.flush() // So that the request describes one version of the map.
	req := c.rebalanceRequest()
	if req.Budget.Room() == 0 {
		return
	}
	if c.kind.cfg.Strategy == "" {
		c.move(c.control().least.DecideRebalance(req), allocation.LeastShardName)
		return
	}
	c.ask(call{rebalance: &req, stale: c.call.stale})
}

// unsettled reports whether shards have no home, are on their way from regions that leave,
// or are planned to be.
func (c *coordinator) unsettled() bool {
	if len(c.plans) > 0 {
		return true
	}
	for i := range c.shards {
		if c.shards[i].home.IsZero() {
			return true
		}
	}
	for _, m := range c.moves { //quorate:unordered any
		if m.handBack {
			return true
		}
	}
	return false
}

// rebalanceRequest describes the regions and the moves under way to a strategy. A
// shard on its way is listed with the region from which it comes. When that region is gone,
// the shard is listed with its home, and its move is not: it only lowers the budget.
func (c *coordinator) rebalanceRequest() allocation.RebalanceRequest {
	budget := allocation.Budget{Simultaneous: c.kind.cfg.simultaneous(), PerRegion: c.kind.cfg.perRegion()}
	for _, id := range c.inFlight() {
		m := c.moves[id]
		if !c.listed(m.from) {
			budget.Simultaneous = max(0, budget.Simultaneous-1)
			continue
		}
		budget.InFlight = append(budget.InFlight, allocation.Move{
			Shard: allocation.Shard(id), From: regionID(m.from), To: regionID(m.to), Reason: m.reason,
		})
	}
	owner := func(id protocol.ShardID) gossip.NodeID {
		if m := c.moves[id]; m != nil && c.listed(m.from) {
			return m.from
		}
		return c.shards[id].home
	}
	return allocation.RebalanceRequest{
		Kind: c.kind.name, Regions: c.regionStates(owner), Fitness: c.fitness(), Budget: budget,
	}
}

// move begins the moves of an answer that was checked, without moves of shards that were
// called off a short time ago, and without moves that would undo a recent one.
func (c *coordinator) move(res allocation.RebalanceResult, strategy string) {
	nodes := c.nodesByRegion()
	o := newCommands()
	fresh := c.resting()
	if fresh {
		c.rebalance.since = c.now()
	}
	begun, undone := 0, 0
	for _, m := range res.Moves {
		id, to := protocol.ShardID(m.Shard), nodes[m.To]
		s := &c.shards[id]
		switch {
		case s.phase != PhaseServing || c.now() < s.notBefore || c.moves[id] != nil:
		case s.came.from == to && c.now() < s.came.at.Add(c.kind.timings.RebalanceIdle):
			undone++
		default:
			c.depart(id, &move{from: s.home, to: to, reason: because(strategy, m.Reason)})
			o.add(id, s)
			begun++
		}
	}
	c.send(o)
	c.rebalance.asked = len(c.moves)
	c.report(strategy, res.Reason, fresh, begun, undone)
}

// resting reports whether no run of rounds is under way.
func (c *coordinator) resting() bool {
	return len(c.moves) == 0 && c.rebalance.moved+c.rebalance.calledOff+c.rebalance.lost == 0
}

// report records the beginning and the end of a run of rounds, and the moves that were
// left out. The rounds between are many, and not recorded.
func (c *coordinator) report(strategy, reason string, fresh bool, begun, undone int) {
	e := &c.rebalance
	if undone > 0 {
		c.control().out.Decide("rebalance", c.kind.name, "left out",
			fmt.Sprintf("%s: %d moves would undo what was moved within the last %v", strategy, undone, c.kind.timings.RebalanceIdle))
	}
	switch {
	case begun > 0 && fresh:
		c.control().out.Decide("rebalance", c.kind.name, "begins", because(strategy, reason))
	case begun == 0 && len(c.moves) == 0 && !c.resting():
		c.control().out.Decide("rebalance", c.kind.name, "rests",
			fmt.Sprintf("%d shards moved, %d called off, %d lost, in %v; %s",
				e.moved, e.calledOff, e.lost, c.now().Sub(e.since), because(strategy, reason)))
		e.moved, e.calledOff, e.lost = 0, 0, 0
	}
}

// because joins the name of a strategy and its reason, which may begin with the name.
func because(strategy, reason string) string {
	switch {
	case reason == "":
		return strategy + ": it gave no reason"
	case len(reason) > len(strategy) && reason[:len(strategy)] == strategy:
		return clip(reason)
	default:
		return clip(strategy + ": " + reason)
	}
}

// rebalanced takes the answer of a strategy. When it is an error, or breaks the
// contract, nothing moves.
func (c *coordinator) rebalanced(asked call, in machine.Called) {
	res, err := answerOf(in, func(res *allocation.RebalanceResult) error {
		return allocation.CheckRebalance(asked.rebalance, res)
	})
	if err != nil {
		c.notMoved(err.Error())
		return
	}
	c.move(res, c.kind.cfg.Strategy)
}

// notMoved records that a strategy gave no usable answer to what should move.
func (c *coordinator) notMoved(why string) {
	c.control().out.Decide("rebalance", c.kind.name, "nothing moves", clip(fmt.Sprintf("strategy %s: %s", c.kind.cfg.Strategy, why)))
}

// perRegion and simultaneous return the bounds of moves. A node that coordinates the kind
// without running it does not know the bounds, and uses the defaults.
func (k KindConfig) perRegion() int { return defaulted(k.MaxSimultaneousPerRegion, 4) }

func (k KindConfig) simultaneous() int { return defaulted(k.MaxSimultaneous, 32) }

func defaulted(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

// listed reports whether the region of a node is among those that a request describes.
func (c *coordinator) listed(node gossip.NodeID) bool {
	r := c.regions[node]
	return r != nil && !r.reg.Proxy && c.control().state.Member(node) != nil
}

// regionStates describes the regions to a strategy, each with the shards of which owner says
// that they are its own, in the order in which they came; shards whose move was called off a
// short time ago are last.
func (c *coordinator) regionStates(owner func(protocol.ShardID) gossip.NodeID) []allocation.RegionState {
	st := c.control().state
	shards := c.byRegion(owner)
	var all []allocation.RegionState
	for _, node := range sortedNodes(c.regions) {
		if !c.listed(node) {
			continue
		}
		m, r := st.Member(node), c.regions[node]
		all = append(all, allocation.RegionState{
			ID: regionID(node), Zone: m.Zone, Roles: m.Roles, Version: m.AppVersion,
			Leaving: !c.kind.couldTake(m), Suspended: r.reg.Suspended, Unreachable: !st.Reachable(node),
			Capacity: r.reg.Capacity, Shards: shards[node],
		})
	}
	slices.SortFunc(all, func(a, b allocation.RegionState) int {
		switch {
		case a.ID < b.ID:
			return -1
		case a.ID > b.ID:
			return 1
		}
		return 0
	})
	return all
}

// byRegion returns the shards of each region.
func (c *coordinator) byRegion(owner func(protocol.ShardID) gossip.NodeID) map[gossip.NodeID][]allocation.Shard {
	all := map[gossip.NodeID][]allocation.Shard{}
	for i := range c.shards {
		if node := owner(protocol.ShardID(i)); !node.IsZero() {
			all[node] = append(all[node], allocation.Shard(i))
		}
	}
	for _, list := range all { //quorate:unordered each list by itself
		slices.SortStableFunc(list, func(a, b allocation.Shard) int {
			x, y := &c.shards[a], &c.shards[b]
			if resting := c.now() < x.notBefore; resting != (c.now() < y.notBefore) {
				if resting {
					return 1
				}
				return -1
			}
			return x.epoch.Compare(y.epoch)
		})
	}
	return all
}
