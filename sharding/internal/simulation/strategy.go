// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/allocation"
	world "github.com/quorate/quorate/simulation"
)

// HomeTimeout is how long a shard may be without a home although a region could host it. The
// strategy has five seconds for a call under way about moves, and for each of three calls
// about homes, whose answers may be outdated since regions come and go. After that
// least-shard decides. Five seconds more are left for everything else.
const HomeTimeout = 4*5*time.Second + 5*time.Second

// Asking returns a cluster of n nodes whose coordinators ask a strategy by calls, of which
// happens what the fates in calls say.
func Asking(seed uint64, n int, scenario string, calls world.Calls, s allocation.Strategy) *Cluster {
	c := New(Options{
		World: world.Options{
			Seed: seed, Scenario: scenario, CodecEvery: 3, RatePPM: 10_000, Calls: calls,
			Network: world.Delivery{Loss: 0.005, Late: 0.01, LateMax: 300 * time.Millisecond},
		},
		Nodes: n, Shards: 48, Every: 25 * time.Millisecond, Patience: 8 * time.Second,
		Strategy: "strange", RestartAfter: 2 * time.Second, HomeTimeout: HomeTimeout,
		MaxSimultaneous: 6, MaxSimultaneousPerRegion: 2,
	})
	c.Ask(s)
	return c
}

// Change lets nodes leave, crash and come back for a minute, the coordinator's node among
// them.
func (c *Cluster) Change() {
	r := rand.New(rand.NewPCG(c.World.Seed(), 11))
	for round := range 6 {
		c.World.At(time.Duration(15+9*round)*time.Second, func() {
			switch r.IntN(4) {
			case 0:
				c.EndCoordinator(true)
			case 1:
				c.EndCoordinator(false)
			case 2:
				c.Leave(r.IntN(c.opt.Nodes))
			default:
				a := Address(r.IntN(c.opt.Nodes))
				c.World.Crash(a)
				c.World.After(time.Duration(r.IntN(12_000))*time.Millisecond, func() {
					if c.World.Node(a) == nil {
						c.World.Restart(a)
					}
				})
			}
		})
	}
}

// Changing runs a cluster whose coordinators ask a strategy while nodes come and go. In the end
// every shard has a home and every message an outcome; that the load is even is not demanded.
func Changing(seed uint64, n int, s allocation.Strategy) (*Cluster, error) {
	c := Asking(seed, n, "sharding-strategy", world.Calls{Max: 50 * time.Millisecond}, s)
	c.Change()
	if err := c.World.Run(75 * time.Second); err != nil {
		return c, err
	}
	c.Quiet()
	return c, c.Await(120*time.Second, c.Settled, c.Drained)
}
