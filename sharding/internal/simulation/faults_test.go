// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// injectFaults lets a random node, which may be the coordinator, an old home or a new one, crash,
// freeze or leave, or cuts a link; or it ends the coordinator, or lets two nodes leave.
func injectFaults(c *simulation.Cluster, r *rand.Rand) {
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
		c.World.Network().Cut(a, b)
		c.World.Network().Cut(b, a)
		c.World.After(lasting, func() { c.World.Network().Heal() })
	case 4:
		c.World.Log("strike: the coordinator ends")
		c.EndCoordinator(r.IntN(2) == 0)
	case 5:
		c.World.Log("strike: leave %v and %v", a, b)
		c.LeaveAt(a)
		c.LeaveAt(b)
	}
}

// struck runs a cluster in which nodes leave and come back, and strikes while shards move.
func struck(seed uint64) (*simulation.Cluster, error) {
	c := simulation.New(simulation.Options{
		World: world.Options{
			Seed: seed, CodecEvery: 3, RatePPM: 10_000,
			Network: world.Delivery{Loss: 0.005, Late: 0.02, LateMax: 300 * time.Millisecond},
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

// aim lets a node leave, and strikes in the middle of the moves that follow: if first is
// set, of those that hand its shards over, else of those by which the node gets its share
// when it is back.
func aim(c *simulation.Cluster, r *rand.Rand, first bool) {
	nodes := c.World.Nodes()
	if len(nodes) == 0 {
		return
	}
	c.LeaveAt(nodes[r.IntN(len(nodes))].ID().Address)
	begin, wait := c.World.Now(), time.Duration(r.IntN(40))*time.Millisecond
	if !first {
		begin += 2 * time.Second // The node that left is back after that time.
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
		c.World.After(wait, func() { injectFaults(c, r) })
	}
	look()
}

// Whatever strikes the nodes of a cluster in the middle of moves, no shard has two homes, no
// message is processed twice or out of order, and in the end the load is even.
// covers F24, F35, F37, F38, F39, I1, I3, I20, I21, I22.
func TestFaultsDuringMoves(t *testing.T) {
	sum, _ := summed(t, 1, struck)
	require.NotZero(t, sum.Moves[control.OutcomeMoved])
}
