// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/gossip"
	world "github.com/quorate/quorate/simulation"
)

// The scenarios. Each is a pure function of its seed and the number of nodes. It ends when all replicas are equal after
// all faults, or with an error that says what is not.

// Scenario is a run with a name: faults are injected into a cluster, whose replicas have to become equal afterwards.
// The functions in set change the options of its world before it begins.
type Scenario struct {
	Name  string
	About string
	Nodes int // The number of nodes for which the scenario was made.
	Run   func(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error)
}

// Scenarios returns the runs that programs can choose from.
func Scenarios() []Scenario {
	return []Scenario{
		{"data-chaos", "replicas come, go and crash while clients read and write", chaosNodes, Chaos},
		{"data-expiry", "the same with keys that expire", chaosNodes, Expiry},
		{"data-homes", "two of three homes of a bucket end at once, the others go on", homesNodes, Homes},
		{"data-older", "the same with disks that come back older", chaosNodes, Older},
		{"data-copied", "the same with disks that are copied for other nodes", chaosNodes, Copied},
		{"data-behind", "the same with stores of which crashes cut the end", chaosNodes, WriteBehind},
	}
}

// chaosNodes is the usual number of nodes of Chaos.
const chaosNodes = 4

// Chaos runs replicas under random faults while members come, go and are removed.
func Chaos(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	return runChaos(New(options(seed, nodes), set...))
}

// runChaos runs a cluster under random faults for a minute, ends the faults, and waits until the replicas are equal.
func runChaos(c *Cluster) (*Cluster, error) {
	c.World.After(3*time.Second, func() {
		c.World.Chaos(world.Chaos{For: 60 * time.Second, Every: 2 * time.Second, Faults: c.faults()})
	})
	if err := c.World.Run(65 * time.Second); err != nil {
		return c, err
	}
	c.repair()
	return c, c.Finish(90 * time.Second)
}

// Expiry is Chaos with keys that expire soon. In the end nothing is left of any.
func Expiry(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := options(seed, nodes)
	o.World.Scenario, o.Expire, o.Keys = "data-expiry", 2*time.Second, 20
	return runChaos(New(o, set...))
}

// options draws what a run is like.
func options(seed uint64, nodes int) Options {
	r := rand.New(rand.NewPCG(seed, 17))
	o := Options{
		World: world.Options{
			Seed: seed, Scenario: "data-chaos", RatePPM: 10_000,
			Network: world.Delivery{Loss: []float64{0, 0.02, 0.2}[r.IntN(3)], Double: 0.03, Late: 0.05, LateMax: time.Duration(1+r.IntN(8)) * time.Second},
		},
		Nodes: nodes, Keys: 2 + r.IntN(6), Every: time.Duration(10+r.IntN(60)) * time.Millisecond, Deletes: r.IntN(6),
		Lag: time.Duration(1+r.IntN(6)) * time.Second, Sweep: time.Duration(1+r.IntN(3)) * time.Second,
		Durable: r.IntN(3) == 0,
	}
	if r.IntN(4) == 0 {
		o.Copies = 3
	}
	if o.Durable {
		o.World.Calls = world.Calls{Min: time.Millisecond, Max: 30 * time.Millisecond, Fail: 0.05, Hang: 0.01, Late: 0.01}
	}
	return o
}

// repair ends all faults, and starts the nodes of all disks.
func (c *Cluster) repair() {
	c.World.Repair()
	c.copied.stopOne()
	c.World.Network().SetDelivery(world.Delivery{})
	c.World.Strategies().Set(world.Calls{})
	if c.opt.Durable {
		for i := range 2 * c.opt.Nodes {
			if c.disks[Address(i)] != nil {
				c.Join(i)
			}
		}
	}
}

// faults are the faults of package simulation, but for those that this package makes itself, and the ones of the
// options.
func (c *Cluster) faults() []world.Fault {
	usual := slices.DeleteFunc(world.Faults(), func(f world.Fault) bool {
		return f.Name == "crash" || f.Name == "restart" || f.Name == "wall"
	})
	if c.opt.Copies > 0 && !c.opt.Durable {
		usual = append(usual, world.Fault{Name: "homes", Weight: 1, Inject: func(_ *world.World, r *rand.Rand) { c.crashHomes(r, 2) }})
	}
	if c.diskAges {
		usual = append(usual, c.ageFaults()...)
	}
	if c.diskCopies {
		usual = append(usual, world.Fault{Name: "copy", Weight: 20, Inject: func(_ *world.World, r *rand.Rand) { c.copied.copyDisk(r) }})
	}
	if c.opt.WriteBehind.Interval > 0 {
		usual = append(usual, writeBehindCluster{c}.faults()...)
	}
	return slices.Concat(usual, []world.Fault{
		{Name: "lose-type", Weight: 3, Inject: loseType},
		{Name: "pause", Weight: 3, Inject: pause},
		{Name: "join", Weight: 4, Inject: func(_ *world.World, r *rand.Rand) { c.Join(r.IntN(2 * c.opt.Nodes)) }},
		{Name: "leave", Weight: 3, Inject: func(w *world.World, r *rand.Rand) {
			if nodes := w.Nodes(); len(nodes) > 1 && !c.ageing() {
				c.Leave(nodes[r.IntN(len(nodes))].ID().Address)
			}
		}},
		{Name: "crash", Weight: 3, Inject: func(w *world.World, r *rand.Rand) { c.crashOne(w, r) }},
		{Name: "remove", Weight: 1, Inject: func(w *world.World, r *rand.Rand) {
			if nodes := w.Nodes(); len(nodes) > 2 {
				c.removeOne(nodes[r.IntN(len(nodes))])
			}
		}},
	})
}

// crashOne crashes a node without which every set in use still has a winning part.
func (c *Cluster) crashOne(w *world.World, r *rand.Rand) {
	nodes := w.Nodes()
	if len(nodes) == 0 {
		return
	}
	if n := nodes[r.IntN(len(nodes))]; c.ageing() {
		return
	} else if c.opt.Durable && c.opt.WriteBehind.Interval == 0 || c.mayLose(n) {
		c.Crash(n.ID().Address)
	}
}

// removeOne removes a member whose node still runs, such as one that was downed while it could not be reached.
func (c *Cluster) removeOne(n *world.Node) {
	if c.mayLose(n) && !c.ageing() {
		c.Remove(n.ID())
	}
}

// pause freezes all nodes, a random group, or all but one.
func pause(w *world.World, r *rand.Rand) {
	nodes := w.Nodes()
	if len(nodes) == 0 {
		return
	}
	spared := r.IntN(3 * len(nodes))
	for i, n := range nodes {
		if i != spared && (spared < len(nodes) || spared >= 2*len(nodes) || r.IntN(2) == 0) {
			w.Freeze(n.ID().Address, time.Second+time.Duration(r.Int64N(int64(8*time.Second))))
		}
	}
}

// loseType loses every message with a body of one type for a while.
func loseType(w *world.World, r *rand.Rand) {
	bodies := []any{
		protocol.Hello{},
		protocol.Prepare{},
		protocol.Promise{},
		protocol.Accept{},
		protocol.Accepted{},
		protocol.Deltas{},
		protocol.DeltasTaken{},
		protocol.Put{},
		protocol.PutTaken{},
		protocol.Ask{},
		protocol.Answer{},
		protocol.Compare{},
		protocol.Groups{},
		protocol.BucketHashes{},
		protocol.Pull{},
		protocol.PullReply{},
		protocol.Sweep{},
		protocol.SweepReply{},
		protocol.EntryRequest{},
		protocol.EntryReply{},
		protocol.Commit{},
		protocol.Committed{},
	}
	lost := reflect.TypeOf(bodies[r.IntN(len(bodies))])
	end := w.Network().Lose(lost.String(), func(_, _ gossip.Address, message any) bool {
		e, ok := message.(protocol.Envelope)
		return ok && reflect.TypeOf(e.Body) == lost
	})
	w.After(time.Second+time.Duration(r.Int64N(int64(8*time.Second))), end)
}
