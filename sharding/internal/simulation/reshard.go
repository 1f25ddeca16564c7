// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/control"
	world "github.com/quorate/quorate/simulation"
)

// The runs in which the number of shards changes: Reshards lets random faults strike meanwhile, and
// Relayouts lets nodes come and go in order, configured for whichever number the kind has had.

// Reshards is Drains in which operators change the number of shards too, again and again. With one seed
// of three what does not stop is left behind.
func Reshards(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := FaultyOptions(seed)
	o.World.Scenario, o.Nodes = "sharding-reshard", nodes
	if seed%2 == 1 {
		o.World.Network = world.Delivery{Loss: 0.05, Late: 0.2, LateMax: time.Second, Double: 0.02}
	}
	if seed%3 == 2 {
		o.OnStuck, o.Behaviour.SlowStop = control.OnStuckAbandon, 0.1
	}
	c := New(o, set...)
	return RunFaults(c, append(Faults(),
		world.Fault{Name: "reshard", Weight: 30, Inject: c.reshard},
		world.Fault{Name: "drain", Weight: 10, Inject: drain},
		world.Fault{Name: "move", Weight: 10, Inject: c.orderMove}))
}

// Relayouts changes the number of shards in a world where nothing else is wrong: once the cluster has formed, nodes
// leave and come back, the coordinator's too, and their files have one or another of the numbers that the kind has had.
// No sender is left without the outcome of its message, unless its own node ends.
func Relayouts(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	c := New(Options{
		World: world.Options{Seed: seed, Scenario: "sharding-relayout", CodecEvery: 3},
		Nodes: nodes, Shards: 16, Entities: 40, Every: 10 * time.Millisecond, Near: 0.3, Patience: 8 * time.Second, RestartAfter: 2 * time.Second,
	}, set...)
	r := rand.New(rand.NewPCG(seed, 21))
	c.files = func(gossip.Address) uint32 {
		past := c.past()
		if len(past) == 0 {
			return c.opt.Shards
		}
		return past[r.IntN(len(past))]
	}
	if err := c.form(); err != nil {
		return c, err
	}
	for round := range 30 {
		c.World.After(3*time.Second+time.Duration(round)*1500*time.Millisecond, func() {
			switch r.IntN(6) {
			case 0:
				if len(c.World.Nodes()) == nodes {
					leave(c.World, r)
				}
			case 1:
				if len(c.World.Nodes()) == nodes { // Of two, the one that is left would be the next coordinator to leave.
					c.EndCoordinator(false)
				}
			case 2:
				c.orderMove(c.World, r)
			default:
				c.reshard(c.World, r)
			}
		})
	}
	if err := c.World.Run(53 * time.Second); err != nil {
		return c, err
	}
	if _, err := recovered(c); err != nil {
		return c, err
	}
	if sum := c.Ledger.Counts(); sum.Failed > sum.Abandoned || sum.TimedOut > 0 {
		return c, fmt.Errorf("I20: nothing was wrong, and %d messages of senders that live failed, and %d had no outcome in time", sum.Failed-sum.Abandoned, sum.TimedOut)
	}
	return c, nil
}
