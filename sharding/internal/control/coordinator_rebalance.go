// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// How the load is evened out: watch and the timer say when to look; rebalanceOnce asks the
// strategy, unless shards without a home come first; move begins the moves of its answer;
// followUp asks again when half of them have ended.

// watch looks whether regions or members have changed in a way that is a reason to ask the
// strategy.
func (c *coordinator) watch() {
	c.rounds.watch(c.regions.digest(fitnessDigest(c.regions.fitness())))
}

// rebalanceFired looks whether the load is even.
func (c *coordinator) rebalanceFired() {
	c.rounds.fired()
	c.evaluate()
}

// followUp asks the strategy again when it is time for the next round.
func (c *coordinator) followUp() {
	if c.rounds.isDue(c.moves.underWay()) {
		c.rebalanceOnce()
	}
}

// rebalanceOnce asks the strategy what should move, unless something else comes first:
// shards without a home, regions that leave, a call under way, a shutdown of the whole cluster.
func (c *coordinator) rebalanceOnce() {
	if c.ending || c.strategy.isAsked() || c.unsettled() || c.control().stays() {
		return
	}
	if wait := c.strategy.mayAsk.Sub(c.now()); wait > 0 && c.kind.cfg.Strategy != "" && !c.kind.cfg.OnOldest {
		c.rounds.arm(wait)
		return
	}
	c.rounds.setDue(false)
	if len(c.regions.eligible()) < 2 {
		return
	}
	c.flush() // So that the request describes one version of the map.
	req := c.rebalanceRequest()
	if req.Budget.Room() == 0 {
		return
	}
	if c.kind.cfg.OnOldest {
		c.move(c.reunite(req), oldestName)
		return
	}
	if c.kind.cfg.Strategy == "" {
		c.move(c.control().least.DecideRebalance(req), allocation.LeastShardName)
		return
	}
	c.strategy.ask(call{rebalance: &req}, c.view())
}

// reunite returns moves of a kind that lives at one region, and a part of which is elsewhere: its
// region was drained, and hosts again. Nothing moves while a member cannot be reached, or while a
// part is at a region that may be given nothing, such as one that has lost its standing for a
// moment: it would lose what it has for nothing.
func (c *coordinator) reunite(req allocation.RebalanceRequest) (res allocation.RebalanceResult) {
	eligible := c.regions.eligible()
	unfit := func(r allocation.RegionState) bool {
		return len(r.Shards) > 0 && !slices.ContainsFunc(eligible, func(n gossip.NodeID) bool { return regionID(n) == r.ID })
	}
	if !req.Fitness.NoneUnreachable || slices.ContainsFunc(req.Regions, unfit) {
		return res
	}
	to, reason := c.oldestHome()
	room := min(req.Budget.Room(), req.Budget.PerRegion-len(req.Budget.InFlight))
	for _, r := range req.Regions {
		for _, s := range r.Shards {
			if r.ID != regionID(to) && !c.moves.isMoving(protocol.ShardID(s)) && len(res.Moves) < room {
				res.Moves = append(res.Moves, allocation.Move{Shard: s, From: r.ID, To: regionID(to), Reason: reason})
			}
		}
	}
	return res
}

// unsettled reports whether shards have no home, are on their way from regions that leave,
// or are planned to be, or the number of shards changes.
func (c *coordinator) unsettled() bool {
	return c.moves.handsBack() || c.table.hasHomeless() || c.table.isChanging()
}

// rebalanceRequest describes the regions and the moves under way to a strategy. A
// shard on its way is listed with the region from which it comes. When that region is gone,
// the shard is listed with its home, and its move is not: it only lowers the budget.
func (c *coordinator) rebalanceRequest() allocation.RebalanceRequest {
	budget := allocation.Budget{Simultaneous: c.kind.cfg.simultaneous(), PerRegion: c.kind.cfg.perRegion()}
	from := map[protocol.ShardID]gossip.NodeID{}
	for _, id := range c.moves.inFlight() {
		m := c.moves.at(id)
		if !c.regions.listed(m.from) {
			budget.Simultaneous = max(0, budget.Simultaneous-1)
			continue
		}
		budget.InFlight = append(budget.InFlight, allocation.Move{
			Shard: allocation.Shard(id), From: regionID(m.from), To: regionID(m.to), Reason: m.reason,
		})
		from[id] = m.from
	}
	owner := func(id protocol.ShardID) gossip.NodeID {
		if node, moves := from[id]; moves {
			return node
		}
		return c.table.home(id)
	}
	return allocation.RebalanceRequest{
		Kind: c.kind.name, Regions: c.regions.states(c.table.byRegion(owner)), Fitness: c.regions.fitness(), Budget: budget,
	}
}

// move begins the moves of an answer that was checked, without moves of shards that were
// called off a short time ago, without moves that would undo a recent one, and without a third move of a shard in a
// short time in which no region came.
func (c *coordinator) move(res allocation.RebalanceResult, strategy string) {
	nodes := c.regions.nodesByRegion()
	o := newCommands()
	before, undone := c.moves.underWay(), 0
	for _, m := range res.Moves {
		id, to := protocol.ShardID(m.Shard), nodes[m.To]
		switch {
		case !c.table.movable(id) || c.moves.isMoving(id):
		case c.table.undoes(id, to) || c.table.isRestless(id, c.regions.cameAt):
			undone++
		default:
			c.beginMove(id, move{from: c.table.home(id), to: to, reason: because(strategy, m.Reason)})
			c.table.addCommand(id, o)
		}
	}
	o.send(c.env)
	c.rounds.answered(strategy, res.Reason, before, c.moves.underWay(), undone)
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
		c.notMoved(asked, err.Error())
		return
	}
	if !c.control().stays() {
		c.move(res, asked.strategy)
	}
}

// notMoved records that a strategy gave no usable answer to what should move.
func (c *coordinator) notMoved(asked call, why string) {
	c.control().out.DecideOften("rebalance", c.kind.name, "nothing moves", clip(fmt.Sprintf("strategy %s: %s", asked.strategy, why)))
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
