// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package shardingsim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// Kind is the kind of the entities in every scenario.
const Kind = simulation.KindName

// ExternalOptions say what an [External] is like.
type ExternalOptions struct {
	Seed     uint64
	Scenario string // The name in the command that repeats a run; empty in tests.
	Nodes    int
	Shards   int
	// Calls says what happens to calls of the components beside sharding. Ask has a fate of its own.
	Calls world.Calls
	// Beside is called with the new world, and returns what builds the components that each node has beside members and
	// entities.
	Beside func(*world.World) func(world.Env) []machine.Component
	// Ask answers a question of the coordinator of a node, an [allocation.AllocateRequest] or an
	// [allocation.RebalanceRequest], at once or later.
	Ask func(n *world.Node, request any, reply func(result any, err error))
}

// External is a cluster with entities whose homes are chosen outside of sharding, by components that each node
// has beside it. All that is checked in every scenario is checked in it too. It belongs to one goroutine.
type External struct {
	c *simulation.Cluster
}

// NewExternal returns a cluster whose nodes have just started, and whose clients send. The functions in set change
// the options of its world before.
func NewExternal(o ExternalOptions, set ...func(*world.Options)) *External {
	options := simulation.FaultyOptions(o.Seed)
	options.World.Scenario, options.World.Calls = o.Scenario, o.Calls
	options.Nodes, options.Shards, options.Beside = o.Nodes, uint32(o.Shards), o.Beside
	options.Strategy, options.HomeTimeout = "external", simulation.HomeTimeout
	options.MaxSimultaneous, options.MaxSimultaneousPerRegion = 6, 2
	options.Every, options.ReviveAfter = 100*time.Millisecond, 10*time.Second
	c := simulation.New(options, set...)
	c.Hand(o.Ask)
	return &External{c}
}

// World returns the world.
func (e *External) World() *world.World { return e.c.World }

// Faults are the usual ones of scenarios with entities.
func (e *External) Faults() []world.Fault {
	return append(simulation.Faults(), world.Fault{Name: "coordinator", Weight: 3, Inject: func(_ *world.World, r *rand.Rand) {
		e.c.EndCoordinator(r.IntN(2) == 0)
	}})
}

// Quiet stops the clients.
func (e *External) Quiet() { e.c.Quiet() }

// Await runs the world until each shard rests at one home that all nodes know, each message has an outcome, and no
// condition is an error, for at most a time.
func (e *External) Await(limit time.Duration, conditions ...func() error) error {
	return e.c.Await(limit, append([]func() error{e.c.Settled, e.c.Drained}, conditions...)...)
}

// Homes returns the addresses of the nodes where shards live, as one node knows them.
func (e *External) Homes() map[allocation.Shard]string {
	at := map[allocation.Shard]string{}
	for _, h := range simulation.Control(e.c.World.Nodes()[0]).Inspect(Kind).Homes {
		at[allocation.Shard(h.Shard)] = h.Node.Address.String()
	}
	return at
}

// Describe returns what the nodes know of homes, for people.
func (e *External) Describe() string {
	var text strings.Builder
	for _, n := range e.c.World.Nodes() {
		fmt.Fprintf(&text, "\n%s: %s", n.ID(), simulation.Control(n))
	}
	return text.String()
}

// Address returns the address of the i-th node.
func Address(i int) gossip.Address { return simulation.Address(i) }
