// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// explain returns what the coordinator knows about a shard.
func (c *coordinator) explain(id protocol.ShardID, question uint64) Explained {
	e := Explained{Kind: c.kind.name, Shard: id, ID: question, Coordinator: c.control().cfg.Self, Term: c.term}
	if int(id) >= len(c.shards) {
		e.Detail = fmt.Sprintf("the kind has %d shards", len(c.shards))
		return e
	}
	s := &c.shards[id]
	e.Phase, e.Home, e.Epoch, e.Base = s.phase, s.home, s.epoch, s.base
	e.Since, e.Decision, e.Detail = s.since, s.decision, c.awaited(s)
	e.Moves = c.history.of(id)
	if p, ok := c.plans[id]; ok {
		e.Target, e.Reason = p.to, p.reason
	}
	if m := c.moves[id]; m != nil {
		e.Target, e.Reason = m.to, m.reason
	}
	if s.phase == PhaseStopping {
		e.Deadline = c.control().now.Wall.Add(s.deadline.Sub(c.now()))
	}
	return e
}

// enter brings a shard into a phase.
func (c *coordinator) enter(s *shard, p Phase) {
	if s.phase != p || s.since.IsZero() {
		s.phase, s.since = p, c.control().now.Wall
	}
}

// awaited says what a shard without a home waits for.
func (c *coordinator) awaited(s *shard) string {
	switch {
	case !s.home.IsZero():
		return ""
	case !c.opened:
		return "waits until these answer, or are fenced: " + joinSome(nodeNames(c.silent()), ", ")
	case c.control().suspended:
		return "waits until the coordinator's node has standing again"
	case len(c.eligible()) == 0:
		return "waits for a region that can host it"
	case c.call.id != 0:
		return "waits for the answer of strategy " + c.kind.cfg.Strategy
	case !c.populated && c.now() < c.settleAt:
		return "waits for other regions until " + c.control().now.Wall.Add(c.settleAt.Sub(c.now())).UTC().Format(time.RFC3339)
	default:
		return "is about to be allocated"
	}
}
