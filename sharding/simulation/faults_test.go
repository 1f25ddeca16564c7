// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	world "github.com/quorate/quorate/membership/simulation"
	"github.com/quorate/quorate/sharding/protocol"
	"github.com/quorate/quorate/sharding/simulation"
)

// strike does something bad to a random node, which may be the coordinator, an old
// home or a new one.
func strike(c *simulation.Cluster, r *rand.Rand) {
	nodes := c.World.Nodes()
	a, b := nodes[r.IntN(len(nodes))].ID().Address, nodes[r.IntN(len(nodes))].ID().Address
	lasting := []time.Duration{time.Second, 4 * time.Second, 15 * time.Second}[r.IntN(3)]
	switch r.IntN(6) {
	case 0:
		c.World.Log("strike: crash %v", a)
		c.World.Crash(a)
		c.World.After(3*time.Second, func() {
			if c.World.Node(a) == nil {
				c.World.Restart(a)
			}
		})
	case 1:
		c.World.Log("strike: freeze %v for %v", a, lasting)
		c.World.Freeze(a, lasting)
	case 2:
		c.World.Log("strike: leave %v", a)
		c.LeaveAt(a)
	case 3:
		c.World.Log("strike: cut %v and %v for %v", a, b, lasting)
		c.World.Cut(a, b)
		c.World.Cut(b, a)
		c.World.After(lasting, func() { c.World.Heal() })
	case 4:
		c.World.Log("strike: the coordinator ends")
		c.EndCoordinator(r.IntN(2) == 0)
	case 5:
		c.World.Log("strike: leave %v and %v", a, b)
		c.LeaveAt(a)
		c.LeaveAt(b)
	}
}

// struck runs a cluster in which nodes leave and come back, and something bad
// happens while shards are on their way.
func struck(seed uint64) (*simulation.Cluster, error) {
	c := simulation.New(simulation.Options{
		World: world.Options{
			Seed: seed, Scenario: "sharding-struck", CodecEvery: 3, RatePPM: 10_000,
			Network: world.Network{Loss: 0.005, Late: 0.02, LateMax: 300 * time.Millisecond},
		},
		Nodes: 6, Shards: 96, Every: 25 * time.Millisecond, Patience: 8 * time.Second, RestartAfter: 2 * time.Second,
		Behaviour: simulation.Behaviour{SlowStop: 0.02, SlowStopFor: 2 * time.Second, LaneFull: 0.02, LaneDown: 0.002, Passivate: 0.05},
	})
	r := rand.New(rand.NewPCG(seed, 9))
	for round := range 3 {
		c.World.At(time.Duration(15+25*round)*time.Second, func() { aim(c, r, round%2 == 0) })
	}
	if err := c.World.Run(90 * time.Second); err != nil {
		return c, err
	}
	return c, c.Finish(150 * time.Second)
}

// aim lets a node leave, and strikes in the middle of the moves: of those that hand
// its shards back, or of those that give the next one its share.
func aim(c *simulation.Cluster, r *rand.Rand, first bool) {
	nodes := c.World.Nodes()
	if len(nodes) == 0 {
		return
	}
	c.LeaveAt(nodes[r.IntN(len(nodes))].ID().Address)
	begin, wait := c.World.Now(), time.Duration(r.IntN(40))*time.Millisecond
	if !first {
		begin += 2 * time.Second // Whoever left comes back after that.
	}
	tries := 0
	var look func()
	look = func() {
		if tries++; tries > 15_000 || len(c.World.Nodes()) == 0 {
			return
		}
		if c.World.Now() < begin || c.Moving() == 0 {
			c.World.After(time.Millisecond, look)
			return
		}
		c.World.After(wait, func() { strike(c, r) })
	}
	look()
}

// Whatever happens to whomever in the middle of moves, no shard has two homes, no
// message is processed twice or out of order, and in the end the load is even.
// covers F24, F35, F37, F38, F39, I1, I3, I20, I21, I22.
func TestFaultsDuringMoves(t *testing.T) {
	first, n := seeds(t, few)
	outcomes := map[protocol.Outcome]int{}
	for seed := first; seed < first+n; seed++ {
		c, err := struck(seed)
		if err != nil {
			t.Fatalf("seed %d: %v\nreplay: QUORATE_SEED=%d go test -run TestFaultsDuringMoves ./simulation", seed, err, seed)
		}
		for outcome, times := range c.Ledger.Counts().Moves {
			outcomes[outcome] += times
		}
	}
	require.NotZero(t, outcomes[protocol.OutcomeMoved])
	t.Logf("%d seeds: %v", n, outcomes)
}

// garble makes up an answer that breaks the contract.
func garble(r *rand.Rand, request any) any {
	switch q := request.(type) {
	case allocation.AllocateRequest:
		res := allocation.AllocateResult{Placements: []allocation.Placement{{Shard: q.Shards[0].Shard, Region: "nowhere"}}}
		if r.IntN(2) == 0 {
			res.Placements = append(res.Placements, make([]allocation.Placement, 2*len(q.Shards))...)
		}
		return res
	case allocation.RebalanceRequest:
		region := q.Regions[r.IntN(len(q.Regions))]
		move := allocation.Move{From: region.ID, To: q.Regions[r.IntN(len(q.Regions))].ID}
		if len(region.Shards) > 0 {
			move.Shard = region.Shards[0]
		}
		switch r.IntN(3) {
		case 0:
			move.To = "nowhere"
		case 1:
			move.Shard = 1 << 20
		default:
			move.To = move.From
		}
		return allocation.RebalanceResult{Moves: []allocation.Move{move}}
	default:
		return "garbage"
	}
}

// A strategy that is slow, fails, answers garbage or not at all costs time and
// nothing else.
// covers F40, I20, I21, I22.
func TestStrangeStrategies(t *testing.T) {
	first, n := seeds(t, few)
	for seed := first; seed < first+n; seed++ {
		c := simulation.New(simulation.Options{
			World: world.Options{
				Seed: seed, Scenario: "strategies", CodecEvery: 3, RatePPM: 10_000,
				Calls: world.Calls{Max: 200 * time.Millisecond, Hang: 0.1, Fail: 0.1, Garbage: 0.2},
			},
			Nodes: 5, Shards: 48, Strategy: "strange", RestartAfter: 2 * time.Second,
		})
		least, err := allocation.NewLeastShard(allocation.Default().LeastShard)
		require.NoError(t, err)
		c.World.Answer(protocol.AllocationCall, func(_ *world.Node, request any) (any, error) {
			switch q := request.(type) {
			case allocation.AllocateRequest:
				require.NoError(t, q.Validate())
				return least.DecideAllocate(q), nil
			case allocation.RebalanceRequest:
				require.NoError(t, q.Validate())
				return least.DecideRebalance(q), nil
			}
			return nil, nil
		})
		c.World.Garble(protocol.AllocationCall, garble)
		for i := range 3 {
			c.World.At(time.Duration(15+10*i)*time.Second, func() { c.Leave(i) })
		}
		require.NoError(t, c.World.Run(50*time.Second))
		err = c.Finish(120 * time.Second)
		require.NoError(t, err, "seed %d", seed)
		counts := c.Ledger.Counts()
		require.Equal(t, counts.Abandoned, counts.Failed, "seed %d: %+v", seed, counts)
		require.NotZero(t, counts.Moves[protocol.OutcomeMoved])
	}
}
