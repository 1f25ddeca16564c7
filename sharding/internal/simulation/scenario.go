// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/passivation"
	"github.com/quorate/quorate/sharding/internal/protocol"
	world "github.com/quorate/quorate/simulation"
)

// The scenarios: Chaos, Storms, Permanent, Limited, Remember, Named, Drains, Handoffs, Leases, Shutdowns, Rescales and
// Reshards inject random faults into a cluster; in Moves and LateCommands nodes and coordinators leave while shards
// move. Each ends when the cluster has recovered, or with an error that says what is missing.

// Scenario is a run with a name: faults are injected into a cluster, which then has to recover. It is a pure function
// of its seed and the number of nodes; the functions in set change the options of its world before it begins.
type Scenario struct {
	Name  string
	About string
	Nodes int // The number of nodes for which the scenario was made.
	Run   func(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error)
}

// Scenarios returns the runs that programs can choose from.
func Scenarios() []Scenario {
	return []Scenario{
		{"sharding-chaos", "random faults, entities that fail and do not stop", chaosNodes, Chaos},
		{"sharding-storms", "the same with pauses, losses by type and bad links", chaosNodes, Storms},
		{"sharding-moves", "nodes and coordinators go while shards move", movesNodes, Moves},
		{"sharding-permanent", "entities without a message, some on the oldest node", chaosNodes, Permanent},
		{"sharding-limited", "random faults, while each node has few entities in memory", chaosNodes, Limited},
		{"sharding-remembered", "entities that come back by themselves, a failing store", chaosNodes, Remember},
		{"sharding-drained", "random faults, while operators drain nodes and move shards", chaosNodes, Drains},
		{"sharding-handoff", "random faults, and entities that take their memory along", chaosNodes, Handoffs},
		{"sharding-orderly", "shards move, nothing is wrong, and no memory is lost", chaosNodes, Orderly},
		{"sharding-reshard", "random faults, while operators change the number of shards", chaosNodes, Reshards},
		{"sharding-relayout", "the number of shards changes, while nodes come and go", chaosNodes, Relayouts},
		{"sharding-named", "streams named by numbers, in sessions that break", namedNodes, Named},
		{"sharding-rescaled", "random faults, while the number of shards in use changes", chaosNodes, Rescales},
		{"sharding-leases", "random faults, a lease for each shard, a failing store", chaosNodes, Leases},
		{"sharding-shutdowns", "the whole cluster is stopped and started again", chaosNodes, Shutdowns},
		{"sharding-late", "commands of coordinators that come late", lateNodes, LateCommands},
	}
}

// The usual numbers of nodes.
const (
	chaosNodes = 5
	movesNodes = 7
	lateNodes  = 6
	namedNodes = 4
)

// Faults are those of membership but for wall clocks that jump: epochs grow over
// restarts of the whole cluster only if whoever forms the next one has a wall clock
// that is not behind.
func Faults() []world.Fault {
	all := slices.DeleteFunc(world.Faults(), func(f world.Fault) bool { return f.Name == "wall" })
	return append(all, world.Fault{Name: "leave", Weight: 3, Inject: leave})
}

// leave lets a random node leave.
func leave(w *world.World, r *rand.Rand) {
	if nodes := w.Nodes(); len(nodes) > 3 {
		a := nodes[r.IntN(len(nodes))].ID().Address
		w.Log("leave %v", a)
		membershipsim.Leave(w, a)
	}
}

// FaultyOptions returns the options of a cluster over a network that loses and delays, with entities that fail and do
// not stop.
func FaultyOptions(seed uint64) Options {
	return Options{
		World: world.Options{
			Seed: seed, CodecEvery: 3, RatePPM: 10_000,
			Network: world.Delivery{Loss: 0.01, Double: 0.01, Late: 0.01, LateMax: 2 * time.Second},
		},
		Nodes: chaosNodes, Shards: 16, Entities: 40, Every: 25 * time.Millisecond, Patience: 8 * time.Second,
		RestartAfter: 2 * time.Second,
		Behaviour: Behaviour{
			FailStart: 0.02, FailRun: 0.01, SlowStop: 0.02, SlowStopFor: 5 * time.Second,
			LaneFull: 0.02, LaneDown: 0.002, Passivate: 0.05,
		},
	}
}

// Chaos runs a cluster under random faults, then lets it recover.
func Chaos(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := FaultyOptions(seed)
	o.World.Scenario, o.Nodes = "sharding-chaos", nodes
	return RunFaults(New(o, set...), Faults())
}

// Storms is Chaos with the faults that several nodes or single types of messages
// share, after which clients go on for longer than the cluster may take to recover.
func Storms(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := FaultyOptions(seed)
	o.World.Scenario, o.Nodes = "sharding-storms", nodes
	o.ReviveAfter = reviveAfter
	c := New(o, set...)
	if err := injectFaults(c, chaos(slices.Concat(Faults(), world.PauseFaults(), world.LossFaults(membershipsim.Traffic()), world.LinkFaults()))); err != nil {
		return c, err
	}
	if err := c.World.Run(c.liveness.within + 10*time.Second); err != nil {
		return c, err
	}
	return recovered(c)
}

// Permanent is Chaos with entities most of which run without a message, and of which many starts
// and messages fail. With an odd seed they live on the oldest node, else operators change the number of shards.
func Permanent(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := FaultyOptions(seed)
	o.World.Scenario, o.Nodes = "sharding-permanent", nodes
	o.Shards, o.Entities, o.Permanent = 8, 24, 16
	o.OnOldest = seed%2 == 1
	o.Every = 100 * time.Millisecond // Most entities are started by no message.
	o.Behaviour = Behaviour{FailStart: 0.2, FailRun: 0.1}
	c := New(o, set...)
	if o.OnOldest {
		return RunFaults(c, Faults())
	}
	return RunFaults(c, append(Faults(), world.Fault{Name: "reshard", Weight: 15, Inject: c.reshard}))
}

// Limited is Chaos in which each node may have few entities in memory, of which some are permanent,
// by a policy that depends on the seed, and operators change the number of shards.
func Limited(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := FaultyOptions(seed)
	o.World.Scenario, o.Nodes = "sharding-limited", nodes
	o.Entities, o.Permanent, o.Every = 60, 2, 10*time.Millisecond
	o.Behaviour.SlowStop = 0.005
	o.Limit = passivation.Config{
		Limit: 3, Policy: passivation.Policies()[seed%uint64(len(passivation.Policies()))],
		Main: passivation.LeastFrequentlyUsed, Protected: 0.5, Window: 0.3, Aging: true,
	}
	c := New(o, set...)
	return RunFaults(c, append(Faults(), world.Fault{Name: "reshard", Weight: 10, Inject: c.reshard}))
}

// Remember is Drains with entities that are remembered, by a store that fails, hangs, is late and loses answers, of
// which many fail or ask to be stopped. With an odd seed the first message to each waits until it is remembered. With
// most seeds operators change the number of shards. Some seeds restart the whole cluster in the middle, half of these
// with another number of shards in the files.
func Remember(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := FaultyOptions(seed)
	o.World.Scenario, o.Nodes = "sharding-remembered", nodes
	o.Shards, o.Entities = 8, 40
	o.Every = 100 * time.Millisecond
	o.Remembered = Remembered{On: true, First: seed%2 == 1, Rate: 20}
	o.Behaviour = Behaviour{FailStart: 0.1, FailRun: 0.05, Passivate: 0.1, LaneFull: 0.02, LaneDown: 0.002, SlowStop: 0.01, SlowStopFor: 5 * time.Second}
	c := New(o, set...)
	if seed%3 == 0 {
		c.World.At(60*time.Second, func() {
			for i := range nodes {
				if a := Address(i); c.World.Node(a) != nil {
					c.World.Crash(a)
				}
			}
			if seed%2 == 0 {
				c.files = func(gossip.Address) uint32 { return 12 }
			}
			c.World.After(3*time.Second, func() {
				for i := range nodes {
					if a := Address(i); c.World.Node(a) == nil {
						c.World.Restart(a)
					}
				}
			})
		})
	}
	faults := append(Faults(), world.Fault{Name: "drain", Weight: 10, Inject: drain}, world.Fault{Name: "move", Weight: 30, Inject: c.orderMove})
	if seed%4 > 0 {
		faults = append(faults, world.Fault{Name: "reshard", Weight: 20, Inject: c.reshard})
	}
	return RunFaults(c, faults)
}

// Named lets random faults strike a cluster whose nodes send most messages in batches, in sessions
// that often break, over a network that loses, doubles and reorders envelopes.
func Named(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := FaultyOptions(seed)
	o.World.Scenario, o.Nodes = "sharding-named", nodes
	o.World.Network = world.Delivery{Loss: 0.01, Double: 0.02, Late: 0.05, LateMax: 3 * time.Second}
	o.Shards, o.Every = 12, 2*time.Millisecond
	o.Behaviour = Behaviour{LaneBusy: true, LaneFull: 0.02, LaneDown: 0.01, LaneStall: 0.01, Run: time.Millisecond}
	return RunChaos(New(o, set...), world.Chaos{For: 10 * time.Second, Every: 3 * time.Second, Faults: Faults()})
}

// Drains is Chaos in which nodes are drained, all of them at times, and told to host again, and
// shards are told to move. With one seed of three the kind lives on the oldest node.
func Drains(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := FaultyOptions(seed)
	o.World.Scenario, o.Nodes = "sharding-drained", nodes
	o.OnOldest = seed%3 == 2
	c := New(o, set...)
	return RunFaults(c, append(Faults(), world.Fault{Name: "drain", Weight: 20, Inject: drain}, world.Fault{Name: "move", Weight: 20, Inject: c.orderMove}))
}

// Rescales is Chaos in which operators change how many shards are in use, with entities most of which run without
// a message. With one seed of three some do not stop in time, and with one of five what does not stop is left behind.
func Rescales(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := FaultyOptions(seed)
	o.World.Scenario, o.Nodes = "sharding-rescaled", nodes
	o.Shards, o.InUse, o.Entities, o.Permanent = 8, 3, 24, 24
	o.Every = 100 * time.Millisecond
	o.Behaviour = Behaviour{FailStart: 0.05, FailRun: 0.02}
	if seed%3 == 2 {
		o.Behaviour.SlowStop, o.Behaviour.SlowStopFor = 0.05, 5*time.Second
	}
	if seed%5 == 4 {
		o.OnStuck, o.Behaviour.SlowStop, o.Behaviour.SlowStopFor = control.OnStuckAbandon, 0.1, 5*time.Second
	}
	c := New(o, set...)
	return RunFaults(c, append(Faults(), world.Fault{Name: "rescale", Weight: 60, Inject: rescale(c)}))
}

// Leases is Drains in which each shard has a lease, in a store that does not answer at times.
func Leases(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := FaultyOptions(seed)
	o.World.Scenario, o.Nodes, o.Leases = "sharding-leases", nodes, true
	c := New(o, set...)
	return RunFaults(c, append(Faults(),
		world.Fault{Name: "drain", Weight: 10, Inject: drain}, world.Fault{Name: "store", Weight: 30, Inject: c.Ledger.leases.fail}))
}

// Shutdowns is Drains in which the whole cluster is stopped in order and started again. Nothing moves meanwhile but
// from nodes that had begun to leave before.
func Shutdowns(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := FaultyOptions(seed)
	o.World.Scenario, o.Nodes = "sharding-shutdowns", nodes
	c := New(o, set...)
	c.World.Observe(func(seen world.Observation) {
		if d, ok := seen.Event.(machine.Decide); ok && (d.Topic == "rebalance" && d.Verdict == "begins" || strings.HasPrefix(d.Verdict, "moves to")) {
			if how := membershipsim.MachineOf(seen.Node).State().Shutdown(); how != gossip.StatusNone {
				c.World.Fail(fmt.Errorf("shutdown: %v moves shards while members are %v: %s %s, %s", seen.Node.ID(), how, d.Subject, d.Verdict, d.Reason))
			}
		}
	})
	return RunFaults(c, append(Faults(), membershipsim.ShutdownFault(20),
		world.Fault{Name: "drain", Weight: 10, Inject: drain}, world.Fault{Name: "move", Weight: 40, Inject: c.orderMove}))
}

// Handoffs is Drains with entities that take their memory along, of which some fail at that or take
// too long. With one seed of two the network loses and delays more, and with one of four some nodes do
// not know of that; with one of five what does not stop is left behind.
func Handoffs(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := FaultyOptions(seed)
	o.World.Scenario, o.Nodes = "sharding-handoff", nodes
	if seed%2 == 1 {
		o.World.Network = world.Delivery{Loss: 0.1, Late: 0.2, LateMax: time.Second, Double: 0.02}
	}
	o.Behaviour.Snapshots = Snapshots{On: true, Fail: 0.05, Slow: 0.05, SlowFor: 4 * time.Second, Older: seed%4 == 3}
	if seed%5 == 4 {
		o.OnStuck, o.Behaviour.SlowStop, o.Behaviour.Snapshots.Slow = control.OnStuckAbandon, 0.2, 0.3
	}
	c := New(o, set...)
	return RunFaults(c, append(Faults(), world.Fault{Name: "drain", Weight: 20, Inject: drain}, world.Fault{Name: "move", Weight: 60, Inject: c.orderMove}))
}

// Orderly moves shards in a world where nothing is wrong: nodes are drained and host again, shards are
// told to move, and nodes leave and come back, the coordinator's too. The memory of all entities comes
// along.
func Orderly(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	c := New(Options{
		World: world.Options{Seed: seed, Scenario: "sharding-orderly", CodecEvery: 3},
		Nodes: nodes, Shards: 16, Entities: 40, Every: 20 * time.Millisecond, Patience: 8 * time.Second, RestartAfter: 2 * time.Second,
		Behaviour: Behaviour{Snapshots: Snapshots{On: true, Whole: true}},
	}, set...)
	r := rand.New(rand.NewPCG(seed, 12))
	for round := range 40 {
		c.World.At(15*time.Second+time.Duration(round)*time.Second, func() {
			switch r.IntN(8) {
			case 0:
				leave(c.World, r)
			case 1, 2:
				drain(c.World, r)
			default:
				c.orderMove(c.World, r)
			}
		})
	}
	if err := c.World.Run(60 * time.Second); err != nil {
		return c, err
	}
	return c, c.Finish(120 * time.Second)
}

// orderMove tells a random node that a random shard is to move to a random node.
func (c *Cluster) orderMove(w *world.World, r *rand.Rand) {
	if nodes := w.Nodes(); len(nodes) > 0 {
		asked, to := nodes[r.IntN(len(nodes))].ID(), nodes[r.IntN(len(nodes))].ID()
		c.orders++
		order := control.Move{Kind: KindName, Shard: protocol.ShardID(r.IntN(int(c.opt.Shards))), To: to, ID: c.orders}
		w.Log("move %d to %v by %v", order.Shard, to, asked)
		w.Input(asked.Address, protocol.Service, order)
	}
}

// reshard tells a random node that the kind is to have another number of shards.
func (c *Cluster) reshard(w *world.World, r *rand.Rand) {
	if nodes := w.Nodes(); len(nodes) > 0 {
		// The first number has nothing in common with most others, and with the last two each former shard
		// of the world goes to shards of its own.
		numbers := [...]uint32{1, 5, 12, 23, 32, 48}
		c.orders++
		order := control.Reshard{Kind: KindName, Shards: numbers[r.IntN(len(numbers))], ID: c.orders}
		asked := nodes[r.IntN(len(nodes))].ID()
		w.Log("reshard to %d by %v", order.Shards, asked)
		w.Input(asked.Address, protocol.Service, order)
	}
}

// drain drains a random node, or tells it to host again.
func drain(w *world.World, r *rand.Rand) {
	if nodes := w.Nodes(); len(nodes) > 0 {
		n := nodes[r.IntN(len(nodes))]
		order := control.Drain{On: r.IntN(3) > 0}
		w.Log("drain %v %t", n.ID(), order.On)
		w.Input(n.ID().Address, protocol.Service, order)
	}
}

// reviveAfter is when nodes are started again that crash after the last fault.
const reviveAfter = 30 * time.Second

// RunFaults injects random faults into a cluster for 90 s, and lets it recover.
func RunFaults(c *Cluster, faults []world.Fault) (*Cluster, error) {
	return RunChaos(c, chaos(faults))
}

func chaos(faults []world.Fault) world.Chaos {
	return world.Chaos{For: 90 * time.Second, Every: 4 * time.Second, Faults: faults}
}

// RunChaos lets a cluster form, injects faults, and lets it recover.
func RunChaos(c *Cluster, faults world.Chaos) (*Cluster, error) {
	if err := injectFaults(c, faults); err != nil {
		return c, err
	}
	return recovered(c)
}

// injectFaults lets a cluster form, and injects faults.
func injectFaults(c *Cluster, faults world.Chaos) error {
	const forms, calms = 15 * time.Second, 15 * time.Second
	c.World.After(forms, func() { c.World.Chaos(faults) })
	return c.World.Run(forms + faults.For + calms)
}

// recovered waits until a cluster has recovered.
func recovered(c *Cluster) (*Cluster, error) {
	if err := c.Finish(150 * time.Second); err != nil {
		var text strings.Builder
		for _, n := range c.World.Nodes() {
			fmt.Fprintf(&text, "\n%s: %s", n.ID(), Control(n))
		}
		return c, fmt.Errorf("seed %d at %v: %w%s", c.World.Seed(), c.World.Now(), err, &text)
	}
	return c, nil
}

// Moves runs a cluster in which nodes leave, and the coordinator leaves or dies
// while their shards move, over a network that delays and loses commands.
func Moves(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	c := New(Options{
		World: world.Options{
			Seed: seed, Scenario: "sharding-moves", CodecEvery: 3, RatePPM: 10_000,
			Network: world.Delivery{Loss: 0.1, Late: 0.2, LateMax: time.Second, Double: 0.02},
		},
		Nodes: nodes, Shards: 32, Every: 30 * time.Millisecond, Patience: 8 * time.Second, RestartAfter: 3 * time.Second,
		Behaviour: Behaviour{SlowStop: 0.05, SlowStopFor: 4 * time.Second},
	}, set...)
	r := rand.New(rand.NewPCG(seed, 5))
	for round := range 5 {
		c.World.At(time.Duration(20+20*round)*time.Second, func() {
			c.Leave(r.IntN(nodes))
			c.World.After(time.Duration(r.IntN(400))*time.Millisecond, func() { c.EndCoordinator(r.IntN(2) == 0) })
		})
	}
	if err := c.World.Run(125 * time.Second); err != nil {
		return c, err
	}
	return c, c.Finish(120 * time.Second)
}

// LateCommands runs a cluster whose coordinator leaves again and again, over a
// network on which a command may arrive long after it was sent.
func LateCommands(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	c := New(Options{
		World: world.Options{
			Seed: seed, Scenario: "sharding-late", CodecEvery: 3, RatePPM: 10_000,
			Network: world.Delivery{Loss: 0.3, Late: 0.3, LateMax: 8 * time.Second},
		},
		Nodes: nodes, Shards: 64, Every: 50 * time.Millisecond, Patience: 8 * time.Second, RestartAfter: 2 * time.Second,
	}, set...)
	r := rand.New(rand.NewPCG(seed, 6))
	for round := range 5 {
		c.World.At(time.Duration(20+15*round)*time.Second, func() {
			c.Leave(r.IntN(nodes))
			c.World.After(time.Duration(r.IntN(1000))*time.Millisecond, func() { c.EndCoordinator(false) })
		})
	}
	if err := c.World.Run(95 * time.Second); err != nil {
		return c, err
	}
	c.World.Network().SetDelivery(world.Delivery{})
	return c, c.Finish(150 * time.Second)
}
