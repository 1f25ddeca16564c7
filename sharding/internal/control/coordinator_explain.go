// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// explain returns what the coordinator knows about a shard.
func (c *coordinator) explain(id protocol.ShardID, question uint64) ShardExplanation {
	e := ShardExplanation{Kind: c.kind.name, Shard: id, ID: question, Coordinator: c.control().cfg.Self, Term: c.term}
	if !c.table.has(id) {
		e.Detail = fmt.Sprintf("the kind has %d shards", c.table.present().Shards)
		return e
	}
	s := c.table.at(id)
	e.Phase, e.Home, e.Epoch, e.Base = s.phase, s.home, s.epoch, s.base
	e.Since, e.Decision, e.Detail = s.since, s.decision, c.awaited(s.home)
	switch {
	case c.table.isChanging():
		e.Detail = "the number of shards changes: " + resharding{c}.progress()
	case s.home.IsZero() && !c.table.isUsed(id):
		e.Detail = fmt.Sprintf("is not in use: %d of %d shards are", c.scaling.current.Count, c.table.present().Shards)
	}
	e.Moves = c.moves.pastOf(id)
	e.Target, e.Reason = c.moves.purpose(id)
	if s.phase == PhaseStopping {
		e.Deadline = c.control().now.Wall.Add(s.deadline.Sub(c.now()))
	}
	return e
}

// awaited says what a shard waits for that has no home, or one that should not host it.
func (c *coordinator) awaited(home gossip.NodeID) string {
	switch {
	case c.regions.isDrained(home) && !c.regions.sparesDrained():
		return "stays at a drained node while no other can host it"
	case !home.IsZero():
		return ""
	case c.scaling.stops():
		return fmt.Sprintf("waits until all shards have stopped, since %d are to be in use instead of %d", c.scaling.next.Count, c.scaling.current.Count)
	case c.scaling.telling && c.regions.isOpen():
		return fmt.Sprintf("waits until these know of revision %d: %s", c.scaling.current.Revision, joinSome(nodeNames(c.regions.behind(c.scaling.current)), ", "))
	case !c.regions.isOpen():
		return "waits until these answer, or are fenced: " + joinSome(nodeNames(c.regions.silent()), ", ")
	case c.control().suspended:
		return "waits until the coordinator's node has standing again"
	case len(c.regions.eligible()) == 0:
		return "waits for a region that can host it"
	case c.strategy.isAsked():
		return "waits for the answer of strategy " + c.strategy.asked.strategy
	case !c.table.isPopulated() && !c.regions.isSettled():
		return "waits for other regions until " + c.control().now.Wall.Add(c.regions.settles().Sub(c.now())).UTC().Format(time.RFC3339)
	default:
		return "is about to be allocated"
	}
}

// past returns the last moves that have ended, the oldest first.
func (c *coordinator) past() []Moved { return c.moves.past() }

// inspect fills in what the coordinator knows.
func (c *coordinator) inspect(i *Inspection) {
	i.Coordinating, i.Term, i.Version, i.Opened = true, c.term, c.table.mapVersion(), c.regions.isOpen()
	i.HeldSnapshots += c.table.snapshots.len()
	i.Rescaling = c.scaling.isBusy()
	i.Layouts = c.table.shards.layouts()
	for phase, n := range c.table.counts() {
		switch Phase(phase) {
		case PhaseOpen:
			i.Open += n
		case PhaseServing:
			i.Serving += n
		case PhaseRetired:
			i.Retired += n
		default:
			i.Moving += n
		}
	}
}
