// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	world "github.com/quorate/quorate/simulation"
)

// Ask puts an allocation strategy behind the calls of the coordinators, and checks what is
// asked; Garble makes a wrong answer of a right one, in one of the ways that a strategy can
// break its contract.

// Ask has the coordinators of a cluster ask a strategy, whose calls have the fates
// that the world draws. Requests must be well formed; that each coordinator has one
// call in flight at most, and does nothing because of an answer that is late, is
// checked. The cluster must have been made with the name of a strategy.
func (c *Cluster) Ask(s allocation.Strategy) {
	c.AskEach(func(string) allocation.Strategy { return s })
}

// AskEach is [Cluster.Ask] for several strategies, by their names: each node asks the one that it
// has chosen when the question is put. One that has changed to the built-in strategy meanwhile gets
// no answer.
func (c *Cluster) AskEach(named func(string) allocation.Strategy) {
	c.World.Strategies().Answer(control.AllocationCall, func(n *world.Node, request any) (any, error) {
		ctx := context.Background()
		s := named(c.Chosen(n.ID().Address))
		if s == nil {
			return nil, errors.New("another strategy has taken its place")
		}
		c.wellFormed(request)
		switch q := request.(type) {
		case allocation.AllocateRequest:
			return s.Allocate(ctx, q)
		case allocation.RebalanceRequest:
			return s.Rebalance(ctx, q)
		}
		return nil, fmt.Errorf("the request is a %T", request)
	})
	c.World.Strategies().Bound(control.AllocationCall, world.Pace{Most: 20, Per: time.Second})
	c.World.Strategies().Garble(control.AllocationCall, Garble)
	c.World.Strategies().Recorded(allocation.AllocateResult{}, allocation.RebalanceResult{})
	c.watchCalls()
}

// Hand is [Cluster.Ask] for a strategy that takes its time: take answers a question of a node when it can.
func (c *Cluster) Hand(take func(n *world.Node, request any, reply func(result any, err error))) {
	c.World.Strategies().Handle(control.AllocationCall, func(n *world.Node, call machine.Call, reply func(any, error)) {
		c.wellFormed(call.Request)
		take(n, call.Request, reply)
	})
	c.watchCalls()
}

// wellFormed checks a question to a strategy.
func (c *Cluster) wellFormed(request any) {
	var err error
	switch q := request.(type) {
	case allocation.AllocateRequest:
		err = q.Validate()
	case allocation.RebalanceRequest:
		err = q.Validate()
	}
	if err != nil {
		c.Ledger.violate("I34: a request that is not well formed: %v", err)
	}
}

// watchCalls checks that each coordinator has one call in flight, and does nothing because of a late answer.
func (c *Cluster) watchCalls() {
	terms := make(map[*world.Node]protocol.Term)
	calling := &world.CallChecker{GivenUp: func(n *world.Node, kind string) bool {
		if kind != control.AllocationCall {
			return false
		}
		term, known := terms[n]
		terms[n] = c.Ledger.leaders[n.ID()]
		return known && term != terms[n]
	}}
	calling.Watch(c.World)
	c.World.Observe(func(o world.Observation) {
		if a, ok := o.Event.(world.Answered); ok && a.Late && a.Port == control.AllocationCall {
			asked := Control(o.Node)
			before := asked.Unsolicited()
			c.World.After(0, func() {
				if asked.Unsolicited() != before+1 {
					c.Ledger.violate("I34: %v has not counted the late answer %d", o.Node.ID(), a.Called.ID)
				}
			})
		}
	})
}

// Garble makes up wrong answers of an allocation strategy: of another type, none,
// with regions that nobody knows or that can take nothing, with shards that nobody
// asked about, that do not exist, or twice, with more moves than there is room for,
// with moves from where a shard is not, and with reasons that are too long. Each
// breaks the contract of [allocation.CheckAllocate] or [allocation.CheckRebalance].
func Garble(r *rand.Rand, request any) any {
	for {
		// What is wrong in one request may be right in another: whatever is added to
		// an answer must not be there.
		switch q := request.(type) {
		case allocation.AllocateRequest:
			answer := garbledHomes(r, &q)
			if a, ok := answer.(allocation.AllocateResult); !ok || allocation.CheckAllocate(&q, &a) != nil {
				return answer
			}
		case allocation.RebalanceRequest:
			answer := garbledMoves(r, &q)
			if a, ok := answer.(allocation.RebalanceResult); !ok || allocation.CheckRebalance(&q, &a) != nil {
				return answer
			}
		default:
			return "garbage"
		}
	}
}

// noShard is the number of a shard that no kind has.
const noShard = 1 << 20

// garbledType returns an answer of another type.
func garbledType(r *rand.Rand) any {
	return [...]any{nil, "garbage", 7}[r.IntN(3)]
}

// garbledHomes starts with homes for all shards at one region, and breaks that.
func garbledHomes(r *rand.Rand, q *allocation.AllocateRequest) any {
	var res allocation.AllocateResult
	home := q.Regions[r.IntN(len(q.Regions))].ID
	for _, p := range q.Shards {
		res.Placements = append(res.Placements, allocation.Placement{Shard: p.Shard, Region: home})
	}
	one := &res.Placements[r.IntN(len(res.Placements))]
	switch r.IntN(8) {
	case 0:
		return garbledType(r)
	case 1:
		one.Region = "nowhere"
	case 2:
		one.Shard = noShard
	case 3: // A shard that has a home, or one that nobody knows.
		one.Shard = noShard + 1
		for i := range q.Regions {
			if len(q.Regions[i].Shards) > 0 {
				one.Shard = q.Regions[i].Shards[0]
			}
		}
	case 4: // Too many.
		res.Placements = slices.Concat(res.Placements, res.Placements)
	case 5: // One of them twice, another not at all.
		*one = res.Placements[0]
	case 6: // Where nothing can go.
		for i := range q.Regions {
			if q.Regions[i].Leaving || q.Regions[i].Suspended || q.Regions[i].Unreachable {
				one.Region = q.Regions[i].ID
			}
		}
	case 7:
		one.Reason = strings.Repeat("because ", allocation.MaxReason/8+1)
	}
	return res
}

// garbledMoves starts with moves of all shards, and breaks that.
func garbledMoves(r *rand.Rand, q *allocation.RebalanceRequest) any {
	var res allocation.RebalanceResult
	to := q.Regions[r.IntN(len(q.Regions))].ID
	for i := range q.Regions {
		for _, s := range q.Regions[i].Shards {
			res.Moves = append(res.Moves, allocation.Move{Shard: s, From: q.Regions[i].ID, To: to})
		}
	}
	r.Shuffle(len(res.Moves), func(i, j int) { res.Moves[i], res.Moves[j] = res.Moves[j], res.Moves[i] })
	sort := r.IntN(8)
	if sort == 0 || len(res.Moves) == 0 {
		return garbledType(r)
	}
	if sort == 1 { // More than there is room for, to one region.
		return res
	}
	res.Moves = res.Moves[:1]
	one := &res.Moves[0]
	switch sort {
	case 2:
		one.To = "nowhere"
	case 3:
		one.From = "nowhere"
	case 4:
		one.Shard = noShard
	case 5:
		one.To = one.From
	case 6:
		res.Moves = append(res.Moves, *one)
	case 7:
		res.Reason = strings.Repeat("because ", allocation.MaxReason/8+1)
	}
	return res
}
