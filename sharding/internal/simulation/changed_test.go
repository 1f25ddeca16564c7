// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// pile is a strategy that moves every shard to the first region that takes any, so that whoever
// evens out the load undoes what it does.
type pile struct{ allocation.Strategy }

// Rebalance moves as many shards to the first region as there is room for.
func (p pile) Rebalance(_ context.Context, q allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	var res allocation.RebalanceResult
	for i, to := range q.Regions {
		if to.Leaving || to.Suspended || to.Unreachable {
			continue
		}
		for j, from := range q.Regions {
			for _, s := range from.Shards {
				one := allocation.RebalanceResult{Moves: append(res.Moves, allocation.Move{Shard: s, From: from.ID, To: to.ID})}
				if i != j && allocation.CheckRebalance(&q, &one) == nil {
					res.Moves = one.Moves
				}
			}
		}
		return res, nil
	}
	return res, nil
}

// Which strategy is asked changes on one node after another while the shards move, so that nodes
// disagree for a while, in the middle of what another strategy has begun, and while nodes and
// coordinators come and go. No shard is hosted twice, none is without a home for longer than
// otherwise, no bound of moves is exceeded, and when all have the same strategy the load is even.
// covers F34, F35, F37, F40, F56, F60, I1, I20, I21, I22, I31, I34.
func TestStrategiesAreChanged(t *testing.T) {
	during := 0
	b := within(t, 2)
	for seed := range b.Seeds {
		c := simulation.Asking(seed, 5, "strategies-changed", mixture(), leastShard(t))
		b.Count(c.World)
		named := map[string]allocation.Strategy{"strange": leastShard(t), "pile": pile{leastShard(t)}}
		c.AskEach(func(name string) allocation.Strategy { return named[name] })
		c.Change()
		r := rand.New(rand.NewPCG(seed, 13))
		for range 10 {
			strategy, until := []string{"", "strange", "pile", "pile"}[r.IntN(4)], time.Duration(0)
			var whenMoving func()
			whenMoving = func() { // For two seconds at most.
				if until += time.Millisecond; c.Moving() == 0 && until < 2*time.Second {
					c.World.After(time.Millisecond, whenMoving)
					return
				}
				if c.Moving() > 0 {
					during++
				}
				for i := range 5 {
					c.World.After(time.Duration(r.IntN(3000)*r.IntN(2))*time.Millisecond, func() { c.Choose(simulation.Address(i), strategy) })
				}
			}
			c.World.At(time.Duration(10_000+r.IntN(60_000))*time.Millisecond, whenMoving)
		}
		require.NoError(t, c.World.Run(78*time.Second), "seed %d", seed)
		c.World.Strategies().Set(world.Calls{})
		for i := range 5 {
			c.Choose(simulation.Address(i), []string{"", "strange"}[seed%2])
		}
		require.NoError(t, c.Finish(120*time.Second), "seed %d", seed)
		require.NoError(t, c.Await(120*time.Second, c.Settled, c.Even), "seed %d", seed)
	}
	t.Logf("%d seeds: %d changes while shards moved", b.Ran(), during)
	require.NotZero(t, during)
}
