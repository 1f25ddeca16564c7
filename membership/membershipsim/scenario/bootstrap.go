// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// The settings of a run are drawn ([booting.draw]), then its world is made ([run.boot]). While
// it runs, the checks follow what nodes are told, and look at the first cluster that is formed
// ([booting.observe], [booting.mayForm]). What happens to the nodes is [bootstrapping].

// booting is a world in which nodes look contact points up, and find what is wrong until
// the scenario has acted. There may never be two clusters, and in the end there is one.
type booting struct {
	world *simulation.World

	bootstrapper protocol.Bootstrapper

	// disks says that nodes remember over their restarts. Else all is forgotten, and one
	// cluster is promised until so many nodes have forgotten it that the others are not
	// enough to keep a second one from being formed.
	disks bool

	forgotten map[gossip.Address]bool

	amiss   float64       // As in [membershipsim.Discovered].
	groups  [][]int       // The same, by the numbers of the nodes.
	grouped bool          // The same.
	peace   time.Duration // From when on faults strike.

	// told is what each node knows that runs, by what its lookups have answered; formed
	// says that a cluster has been formed.
	told   map[gossip.NodeID]known
	formed bool
}

// bootstrapTime is for how long discovery is wrong and faults strike.
const bootstrapTime = 90 * time.Second

// doubtful is a windy network, in which lookups and deciders hang and fail.
func doubtful(o *simulation.Options) {
	windy(o)
	o.Calls = simulation.Calls{Max: 500 * time.Millisecond, Hang: 0.03, Fail: 0.05, Garbage: 0.03, Late: 0.03}
}

// draw draws the settings by which n nodes bootstrap.
func (b *booting) draw(seed uint64, n int) {
	source := rand.New(rand.NewPCG(seed, 0xb007)) //nolint:gosec // Simulation, not secrets.
	c := bootstrap.Default()
	c.RequiredContactPoints = n/2 + 1
	if source.IntN(3) == 0 {
		c.RequiredContactPoints += source.IntN(n - n/2)
	}
	c.StableMargin = between(source, time.Second, 8*time.Second)
	c.ContactAll = source.IntN(2) == 0
	b.bootstrapper = protocol.Bootstrapper{Config: c, Limit: c.ResolveTimeout, Asked: source.IntN(3) == 0}
	b.disks = source.IntN(3) > 0
	b.forgotten, b.told = make(map[gossip.Address]bool), make(map[gossip.NodeID]known)
	b.grouped = source.IntN(3) == 0
	b.amiss = []float64{0.05, 0.3, 0.6, 1}[source.IntN(4)]
	b.peace = between(source, 0, 40*time.Second)
	// Two groups, each large enough, that have as few nodes in common as can be.
	order, size := source.Perm(n), min(n, c.RequiredContactPoints)
	b.groups = [][]int{order[:size], order[n-size:]}
	if b.grouped {
		b.amiss, b.peace = max(b.amiss, 0.6), 30*time.Second+b.peace/2
	}
}

// boot adds what looks after the nodes, and the checks of how clusters are formed.
func (r *run) boot(o *Options) {
	b := &booting{world: r.world}
	r.booting = b
	b.draw(o.Seed, o.Nodes)
	for i := range r.nodes {
		// Ten is above nine as a number and below it as a text.
		r.nodes[i] = gossip.Address{Host: fmt.Sprintf("10.0.%d.%d", i/200, 5+i%200), Port: 7946}
	}
	discovered := &membershipsim.Discovered{Nodes: r.nodes, RightFrom: r.duration, Amiss: b.amiss, Grouped: b.grouped}
	for _, group := range b.groups {
		discovered.Groups = append(discovered.Groups, r.numbered(group))
	}
	discovered.Serve(r.world)
	supervisor := &membershipsim.Supervisor{
		Discover: true, Min: 500 * time.Millisecond, Max: 3 * time.Second, Slow: 0.1, SlowMax: restartMost,
	}
	supervisor.Supervise(r.world)
	one := &membershipsim.OneCluster{BirthsMayFall: !b.disks}
	if !b.disks {
		one.Excused = func() bool { return len(b.forgotten) >= 2*b.bootstrapper.Config.RequiredContactPoints-len(r.nodes) }
	}
	r.world.Observe(b.observe)
	one.Watch(r.world)
	r.world.Log("bootstrap %+v disks %v amiss %v groups %v", b.bootstrapper, b.disks, b.amiss, b.groups)
}

// numbered returns the addresses of the nodes of these numbers.
func (r *run) numbered(numbers []int) []gossip.Address {
	var all []gossip.Address
	for _, i := range numbers {
		all = append(all, r.nodes[i])
	}
	return all
}

// known is what a node has been told of contact points.
type known struct {
	list  []discovery.Target // Sorted, without doubles.
	since time.Duration      // World time at which it was first told this; zero: a lookup has failed since.
}

// observe follows what nodes are told, and looks at the first cluster that is formed.
func (b *booting) observe(o simulation.Observation) {
	switch e := o.Event.(type) {
	case simulation.Ended:
		delete(b.told, o.Node.ID())
		if !membershipsim.MachineOf(o.Node).State().Cluster().IsZero() {
			b.forgotten[o.Node.ID().Address] = true
		}
	case simulation.Answered:
		if e.Port == protocol.CallLookup {
			b.answered(o, e)
		}
	case machine.Decide:
		if !b.formed && e.Topic == "join" && strings.HasPrefix(e.Verdict, "formed cluster") {
			b.formed = true
			b.world.Fail(b.mayForm(o))
		}
	}
}

// answered takes what a node is told.
func (b *booting) answered(o simulation.Observation, e simulation.Answered) {
	found, ok := e.Called.Result.(discovery.Targets)
	if e.Late {
		return // The node has asked anew.
	}
	if e.Called.Err != nil || !ok {
		b.told[o.Node.ID()] = known{}
		return
	}
	list := slices.Clone(found.List)
	for i := range list {
		if list[i].Port == 0 {
			list[i].Port = o.Node.ID().Address.Port
		}
	}
	slices.SortFunc(list, discovery.Target.Compare)
	list = slices.Compact(list)
	if before := b.told[o.Node.ID()]; before.since == 0 || !slices.Equal(before.list, list) {
		b.told[o.Node.ID()] = known{list: list, since: o.At}
	}
}

// mayForm checks that the first cluster, which nobody can remember, is formed by a node
// that was found, with as many contact points as are required, after the margin.
func (b *booting) mayForm(o simulation.Observation) error {
	of, c := b.told[o.Node.ID()], b.bootstrapper.Config
	self := o.Node.ID().Address
	isSelf := func(t discovery.Target) bool { return t.Host == self.Host && t.Port == self.Port }
	margin := c.StableMargin - c.StableMargin/50 // Clocks run at different rates.
	switch {
	case of.since == 0 || o.At-of.since < margin:
		return fmt.Errorf("bootstrap: %v formed a cluster at %v, with contact points that it was told at %v: the margin is %v", o.Node.ID(), o.At, of.since, c.StableMargin)
	case len(of.list) < c.RequiredContactPoints:
		return fmt.Errorf("bootstrap: %v formed a cluster with %d contact points, %d are required", o.Node.ID(), len(of.list), c.RequiredContactPoints)
	case !slices.ContainsFunc(of.list, isSelf):
		return fmt.Errorf("bootstrap: %v formed a cluster, and is none of the contact points %v", o.Node.ID(), of.list)
	}
	return nil
}

// bootstrapping lets nodes come one after the other, and faults strike while they look
// for each other. The two groups that nodes may be told of are cut off from one another.
func bootstrapping(r *run) {
	w, b := r.world, r.booting
	for _, a := range r.nodes {
		if w.Rand().IntN(2) == 0 {
			w.Crash(a) // Its supervisor starts it, some time later.
		}
	}
	apart := func(w *simulation.World, rand *rand.Rand) {
		var sides [2][]gossip.Address
		for i, a := range r.nodes {
			side := 0
			if slices.Contains(b.groups[1], i) {
				side = 1
			}
			sides[side] = append(sides[side], a)
		}
		w.Network().Split(sides[0], sides[1])
		w.After(between(rand, 0, 30*time.Second), w.Network().Heal)
	}
	if b.grouped { // While they look for each other, some time before the first may form a cluster.
		w.After(b.bootstrapper.Config.StableMargin+between(w.Rand(), 0, 20*time.Second), func() { apart(w, w.Rand()) })
	}
	faults := append(lightly(membershipsim.FoundingFaults()), simulation.Fault{Name: "groups-apart", Weight: 6, Inject: apart})
	faults = append(faults, simulation.LinkFaults()...)
	w.At(b.peace, func() {
		w.Chaos(simulation.Chaos{For: max(r.duration-w.Now()-time.Second, 0), Every: 4 * time.Second, Faults: faults, Unrepaired: true})
	})
	w.At(r.duration, func() {
		w.Network().SetDelivery(r.network)
		w.Network().Heal()
		w.Strategies().Set(simulation.Calls{})
	})
}
