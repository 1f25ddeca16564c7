// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A move of a shard: beginMove tells the home to stop it, giveTarget or giveHome gives it the next home, end records
// the outcome; overdue handles homes that do not stop in time. Moves of shards whose region leaves or is drained are
// planned by place, and beginMoves begins as many at a time as may be under way; one that an operator wants begins by
// orderMove. A coordinator that ends itself lets its moves end, by retire.

// waveFactor times [KindConfig.MaxSimultaneousPerRegion] is the number of shards that
// a region which leaves hands back at one time.
const waveFactor = 8

// advance begins the moves that have become possible since another move took a step.
func (c *coordinator) advance() {
	if !c.decides() || c.scaling.isBusy() {
		return
	}
	c.beginMoves()
	resharding{c}.step()
	c.followUp()
}

// beginMove begins a move: the home of the shard is told to stop it. The shard takes its load along.
func (c *coordinator) beginMove(id protocol.ShardID, m move) {
	c.regions.carry(id, m.from)
	c.table.stop(id)
	c.moves.begin(id, m)
}

// giveTarget gives a shard that has stopped the home on which its move decided, if that node can
// still take it.
func (c *coordinator) giveTarget(id protocol.ShardID, from gossip.NodeID, open []gossip.NodeID) bool {
	if !c.decides() || c.scaling.isBusy() || c.table.isFormer(id) {
		return false
	}
	to, reason, ok := c.moves.targetOf(id, from, open)
	if ok {
		c.giveHome(id, to, reason)
	}
	return ok
}

// giveHome gives a shard a home.
func (c *coordinator) giveHome(id protocol.ShardID, node gossip.NodeID, decision string) {
	c.table.giveHome(id, node, decision)
	c.moves.aim(id, node, decision)
}

// end ends the move of a shard, if there is one.
func (c *coordinator) end(id protocol.ShardID, how Outcome) {
	moved, handBack, ok := c.moves.end(id, how)
	if !ok {
		return
	}
	if !handBack {
		c.rounds.ended(how)
		if how == OutcomeMoved {
			c.table.arrived(id, moved.From)
		}
	}
	c.control().out.Publish(MoveEnded{Kind: c.kind.name, Moved: moved})
}

// departingShards returns the shards that a batch should find targets for: those of
// regions that are to hand them back.
func (c *coordinator) departingShards() []protocol.ShardID {
	if c.ending {
		return nil
	}
	return slices.DeleteFunc(c.table.movableFrom(c.regions.departing()), c.moves.isPlanned)
}

// orderMove begins the move of a shard, beside what the budget permits, or says why it does not.
func (c *coordinator) orderMove(shard protocol.ShardID, to gossip.NodeID) (refusal string) {
	id := c.table.present().Shard(shard.Index()) // An operator knows the place alone.
	switch {
	case !c.table.has(id):
		return fmt.Sprintf("the kind has %d shards", c.table.present().Shards)
	case c.kind.cfg.OnOldest:
		return "the kind lives at one node as a whole"
	case !c.decides() || c.ending:
		return "the coordinator does not decide yet, or not any more"
	case c.control().stays():
		return allStop
	case c.scaling.isBusy():
		return "the number of shards in use is being changed"
	case c.moves.isMoving(id) || c.table.at(id).phase != PhaseServing:
		return "it is on its way, or has no home"
	case c.table.home(id) == to:
		return "it lives there"
	case !slices.Contains(c.regions.eligible(), to):
		return "that node can be given no shard: it leaves, is drained or suspended, cannot be reached, or does not host the kind"
	}
	c.moves.drop(id)
	c.beginMove(id, move{from: c.table.home(id), to: to, reason: byOrder})
	c.command(PhaseStopping)
	c.control().out.Decide("handoff", fmt.Sprintf("%s: shard %d", c.kind.name, id.Index()), "moves to "+to.String(), byOrder)
	return ""
}

// beginMoves begins planned moves, as many from each region as may be under way at one time. What is
// planned from a region that hosts again is dropped.
func (c *coordinator) beginMoves() {
	homes := c.moves.homes()
	if len(homes) == 0 || c.ending {
		return
	}
	open := c.regions.eligible()
	young, parting := c.moves.young(), c.regions.departing()
	o := newCommands()
	for _, home := range homes {
		if parting[home] == "" {
			c.moves.dropFrom(home)
			continue
		}
		c.release(home, waveFactor*c.kind.cfg.perRegion()-young[home], open, o)
	}
	o.send(c.env)
}

// release begins at most most of the moves that are planned from a home. A plan that is out
// of date is dropped, and made anew by the next batch.
func (c *coordinator) release(home gossip.NodeID, most int, open []gossip.NodeID, o commands) {
	for most > 0 {
		id, p, ok := c.moves.next(home)
		if !ok {
			return
		}
		if !c.table.serves(home, id) || !slices.Contains(open, p.to) {
			continue
		}
		c.beginMove(id, move{from: home, to: p.to, reason: p.reason, handBack: true})
		c.table.addCommand(id, o)
		most--
	}
}

// overdue gives up waiting for homes that do not stop shards in time: the stop is taken
// back, or the entities are given up.
func (c *coordinator) overdue() {
	next, verdict := PhaseResuming, "called off"
	if c.kind.cfg.OnStuck == OnStuckAbandon {
		next, verdict = PhaseReleasing, "abandoned"
	}
	late := c.table.giveUp(next)
	for _, node := range sortedNodes(late) {
		c.control().out.Decide("handoff", c.kind.name, verdict,
			fmt.Sprintf("%s did not stop %d shards within the handoff timeout", node, late[node]))
	}
	if late := sortedNodes(late); len(late) > 0 && next == PhaseResuming && c.scaling.stops() {
		c.scaling.callOff("these did not stop all that they run within the handoff timeout: " + joinSome(nodeNames(late), ", "))
		scaleChange{c}.forgetStops()
	}
	if n := c.table.snapshots.expire(c.now()); n > 0 {
		c.control().out.Decide("handoff", c.kind.name, "memory left behind",
			fmt.Sprintf("that of the entities of %d shards could not be brought to their new homes in time", n))
	}
}

// The times for which a coordinator that ends waits for its moves.
const (
	// endPatience is how long shards may take to stop, before their stop is taken back.
	endPatience = time.Second
	// endTimeout is how long the coordinator waits at most. A shard that is on its way then
	// is found by the next coordinator, without the positions of its streams.
	endTimeout = 3 * time.Second
)

// retire lets the moves under way come to their ends, and begins no other. Plans that have
// not begun are left to the next coordinator.
func (c *coordinator) retire() {
	c.ending, c.endBy = true, c.now().Add(endTimeout)
	c.moves.dropAll()
	c.table.hasten(c.now().Add(endPatience))
	c.scaling.drop()
	if c.strategy.isAsked() {
		c.strategy.forget()
	}
	c.evaluate()
}

// retired reports whether a coordinator that ends can stop. Its successor must have asked
// for that, since until then no other node answers regions that need maps and homes. And no
// shard may be on its way: every shard is open, or with a home, which reports it to the
// successor. Without anybody who could be the successor there is nothing to wait for.
func (c *coordinator) retired() bool {
	if !c.ending {
		return false
	}
	if c.now() >= c.endBy || !c.kind.successor() {
		return true
	}
	return c.kind.core.Asked() && c.table.atRest()
}
