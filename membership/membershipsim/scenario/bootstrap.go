// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
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

// The settings of a run are drawn ([bootstrapWorld.draw]), then its world is made ([run.setUpBootstrap]). While
// the world runs, the checks follow the answers to lookups, and look at the first cluster that
// is formed ([bootstrapWorld.observe], [bootstrapWorld.mayForm]). The function [bootstrapping] says what
// happens to the nodes.

// bootstrapWorld are the settings and the checks of a world whose nodes look contact points up, and get
// wrong answers until the faults of the scenario end. There may never be two clusters, and in the end
// there is one.
type bootstrapWorld struct {
	world *simulation.World

	bootstrap protocol.Bootstrap

	// disks says that nodes remember over their restarts. Without disks a node that ends has
	// forgotten its cluster, and only one cluster is promised until so many nodes have
	// forgotten it that the others are too few to keep a second one from being formed.
	disks bool

	// forgotten holds the nodes that have ended while they were in a cluster.
	forgotten map[gossip.Address]bool

	amiss      float64       // As [membershipsim.Discovered] has it.
	groups     [][]int       // As [membershipsim.Discovered] has them, but by the numbers of the nodes.
	grouped    bool          // As [membershipsim.Discovered] has it.
	faultsFrom time.Duration // When faults begin to strike.

	// told holds, for each running node, what came of its lookups; formed says that a cluster has been formed.
	told   map[gossip.NodeID]*lookups
	formed bool
}

// bootstrapTime is how long answers to lookups are wrong and faults strike.
const bootstrapTime = 90 * time.Second

// unreliableLookups sets up an unreliable network, in which lookups and deciders hang and fail.
func unreliableLookups(o *simulation.Options) {
	unreliableNetwork(o)
	o.Calls = simulation.Calls{Max: 500 * time.Millisecond, Hang: 0.03, Fail: 0.05, Garbage: 0.03, Late: 0.03}
}

// draw draws the settings by which n nodes bootstrap.
func (b *bootstrapWorld) draw(seed uint64, n int) {
	source := rand.New(rand.NewPCG(seed, 0xb007))
	c := bootstrap.Default()
	c.RequiredContactPoints = n/2 + 1
	if source.IntN(3) == 0 {
		c.RequiredContactPoints += source.IntN(n - n/2)
	}
	c.StableMargin = between(source, time.Second, 8*time.Second)
	c.ContactAll = source.IntN(2) == 0
	b.bootstrap = protocol.Bootstrap{Config: c, Limit: c.ResolveTimeout, Asked: source.IntN(3) == 0}
	b.disks = source.IntN(3) > 0
	b.forgotten, b.told = make(map[gossip.Address]bool), make(map[gossip.NodeID]*lookups)
	b.grouped = source.IntN(3) == 0
	b.amiss = []float64{0.05, 0.3, 0.6, 1}[source.IntN(4)]
	b.faultsFrom = between(source, 0, 40*time.Second)
	// Two groups, each as large as the number that is required, with as few nodes in common
	// as possible.
	order, size := source.Perm(n), min(n, c.RequiredContactPoints)
	b.groups = [][]int{order[:size], order[n-size:]}
	if b.grouped {
		b.amiss, b.faultsFrom = max(b.amiss, 0.6), 30*time.Second+b.faultsFrom/2
	}
}

// setUpBootstrap adds the discovery and the supervisor of the nodes, and the checks of how clusters are
// formed.
func (r *run) setUpBootstrap(o *Options) {
	b := &bootstrapWorld{world: r.world}
	r.bootstrapWorld = b
	b.draw(o.Seed, o.Nodes)
	for i := range r.nodes {
		// Ten is above nine as a number and below it as a text.
		r.nodes[i] = gossip.Address{Host: fmt.Sprintf("10.0.%d.%d", i/200, 5+i%200), Port: 7946}
	}
	discovered := &membershipsim.Discovered{Nodes: r.nodes, RightFrom: r.duration, Amiss: b.amiss, Grouped: b.grouped}
	if d := o.Strategies.Discovery; d != nil {
		discovered.Find = nodesFound(d, r.nodes)
	}
	for _, group := range b.groups {
		discovered.Groups = append(discovered.Groups, r.numbered(group))
	}
	discovered.Serve(r.world)
	supervisor := &membershipsim.Supervisor{
		Discover: true, Min: 500 * time.Millisecond, Max: 3 * time.Second, Slow: 0.1, SlowMax: maxRestart,
	}
	supervisor.Supervise(r.world)
	one := &membershipsim.OneCluster{BirthsMayFall: !b.disks}
	if !b.disks {
		one.Excused = func() bool { return len(b.forgotten) >= 2*b.bootstrap.Config.RequiredContactPoints-len(r.nodes) }
	}
	r.world.Observe(b.observe)
	one.Watch(r.world)
	r.world.Log("bootstrap %+v disks %v amiss %v groups %v", b.bootstrap, b.disks, b.amiss, b.groups)
}

// numbered returns the addresses of the nodes of these numbers.
func (r *run) numbered(numbers []int) []gossip.Address {
	var all []gossip.Address
	for _, i := range numbers {
		all = append(all, r.nodes[i])
	}
	return all
}

// lookups are the answers to the lookups of a node since the last answer that was empty.
type lookups struct {
	answers []lookupAnswer
	failed  bool // The last lookup has failed.
}

// lookupAnswer is an answer to a lookup of a node.
type lookupAnswer struct {
	list []discovery.Target
	at   time.Duration // World time.
	anew bool          // The lookup before this one had failed.
}

// observe follows the answers to lookups, and looks at the first cluster that is formed.
func (b *bootstrapWorld) observe(o simulation.Observation) {
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

// answered keeps the answer to a lookup of a node.
func (b *bootstrapWorld) answered(o simulation.Observation, e simulation.Answered) {
	found, ok := e.Called.Result.(discovery.Targets)
	if e.Late {
		return // The node has given this lookup up, and made another.
	}
	told := b.told[o.Node.ID()]
	if told == nil {
		told = &lookups{}
		b.told[o.Node.ID()] = told
	}
	if e.Called.Err != nil || !ok {
		told.failed = true
		return
	}
	if len(found.List) == 0 {
		*told = lookups{}
		return
	}
	list := slices.Clone(found.List)
	for i := range list {
		if list[i].Port == 0 {
			list[i].Port = o.Node.ID().Address.Port
		}
	}
	told.answers, told.failed = append(told.answers, lookupAnswer{list, o.At, told.failed}), false
}

// mayForm checks that the first cluster, when no node can remember one, is formed by a node that was found, with as
// many contact points as are required, that no lookup failed within the margin, and that what was found within it was
// in the set with which the margin began. That is the set of the last answer before it, with what others had named
// within the margin before that answer (docs/bootstrap.md, "It is counted at each answer, and stays until the next
// one.").
func (b *bootstrapWorld) mayForm(o simulation.Observation) error {
	c, self := b.bootstrap.Config, o.Node.ID().Address
	slack := c.StableMargin / 50 // Clocks run at different rates.
	began := o.At - c.StableMargin + slack
	told := b.told[o.Node.ID()]
	if told == nil {
		return fmt.Errorf("bootstrap: %v formed a cluster at %v, and no lookup was answered", o.Node.ID(), o.At)
	}
	answers := told.answers
	first := slices.IndexFunc(answers, func(k lookupAnswer) bool { return k.at > began })
	if first < 0 {
		first = len(answers)
	}
	if told.failed || slices.ContainsFunc(answers[first:], func(k lookupAnswer) bool { return k.anew }) {
		return fmt.Errorf("bootstrap: %v formed a cluster at %v, though a lookup had failed within the margin of %v", o.Node.ID(), o.At, c.StableMargin)
	}
	before, found := map[discovery.Target]bool{}, map[discovery.Target]bool{}
	for i, k := range answers {
		for _, t := range k.list {
			switch {
			case i >= first:
				found[t] = true
			case answers[first-1].at-k.at < c.StableMargin+slack:
				before[t] = true
			}
		}
	}
	for t := range found { //quorate:unordered any of them is an error
		if !before[t] {
			return fmt.Errorf("bootstrap: %v formed a cluster at %v, with the contact point %v that it was told within the margin of %v", o.Node.ID(), o.At, t, c.StableMargin)
		}
	}
	maps.Copy(found, before)
	switch {
	case len(found) < c.RequiredContactPoints:
		return fmt.Errorf("bootstrap: %v formed a cluster with %d contact points, %d are required", o.Node.ID(), len(found), c.RequiredContactPoints)
	case !found[discovery.Target{Host: self.Host, Port: self.Port}]:
		return fmt.Errorf("bootstrap: %v formed a cluster, and is none of the contact points %v", o.Node.ID(), found)
	}
	return nil
}

// bootstrapping starts nodes one after the other, and lets faults strike while they look for
// each other. One of the faults cuts the two groups, of which lookups may tell, off from one
// another.
func bootstrapping(r *run) {
	w, b := r.world, r.bootstrapWorld
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
	if b.grouped { // The groups are cut off some time after a cluster could be formed at the earliest.
		w.After(b.bootstrap.Config.StableMargin+between(w.Rand(), 0, 20*time.Second), func() { apart(w, w.Rand()) })
	}
	faults := append(lightly(membershipsim.FoundingFaults()), simulation.Fault{Name: "groups-apart", Weight: 6, Inject: apart})
	faults = append(faults, simulation.LinkFaults()...)
	w.At(b.faultsFrom, func() {
		w.Chaos(simulation.Chaos{For: max(r.duration-w.Now()-time.Second, 0), Every: 4 * time.Second, Faults: faults, Unrepaired: true})
	})
	w.At(r.duration, func() {
		w.Network().SetDelivery(r.network)
		w.Network().Heal()
		w.Strategies().Set(simulation.Calls{})
	})
}
