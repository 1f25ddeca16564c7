// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package outcomes

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// The run of one case: form makes the cluster, the functions after it are what a case does to
// the cluster, and watch follows who hosts until the end.

// cluster is the cluster of one case.
type cluster struct {
	world      *simulation.World
	invariants membershipsim.Invariants
	leases     *membershipsim.Leases // Nil if the strategy asks for none.
	config     membershipsim.Config
	rolesOf    func(i int) []string
	n          int
	hosts      []gossip.Address // Who hosts, as last seen.
	changed    time.Duration    // World time at which that changed.
}

const (
	// formed is how long the cluster may take to form.
	formed = time.Minute
	// look is how often it is looked at who hosts.
	look = 100 * time.Millisecond
	// ends is how long after the fault a case ends, and endsWaiting is the same for a strategy
	// without whose answer a side waits: longer than such a side waits.
	ends        = 30 * time.Second
	endsWaiting = 75 * time.Second
	// spread bounds how long after it is formed a cluster is struck, so that cases strike at
	// different moments between two heartbeats.
	spread = 10
)

// address returns the address of a node.
func address(i int) gossip.Address { return gossip.Address{Host: fmt.Sprintf("n%d", i), Port: 7946} }

// form returns the cluster of a case, with all members up.
func form(o *Options, c *Case, seed uint64) (*cluster, error) {
	k := &cluster{n: c.nodes, rolesOf: o.rolesOf, config: membershipsim.Config{Downing: o.Strategy.downing()}}
	k.world = simulation.New(simulation.Options{
		Seed: seed, RatePPM: 10_000, Trace: o.Trace, Scenario: fmt.Sprintf("outcomes -nodes %d", c.nodes),
	})
	membershipsim.Serve(k.world)
	k.leases = o.Strategy.serve(k.world)
	k.invariants.MinoritySurvives = !o.Strategy.Class.MajorityOnly
	k.invariants.Watch(k.world)
	for i := range c.nodes {
		k.start(i)
	}
	if _, err := k.world.RunUntil(formed, func() bool {
		return len(k.world.Nodes()) == c.nodes && membershipsim.Settled(k.world) == nil
	}); err != nil {
		return nil, err
	}
	if err := membershipsim.Settled(k.world); err != nil {
		return nil, fmt.Errorf("outcomes: the cluster has not formed: %w", err)
	}
	// The first node that was up has seen the last one up, and every node hosts.
	return k, k.world.Run(time.Second + time.Duration(seed%spread)*time.Second/spread)
}

func (c *cluster) start(i int) {
	config := c.config
	config.Roles = c.rolesOf(i)
	build := membershipsim.Component(config)
	node := c.world.Start(address(i), func(env simulation.Env) []machine.Component {
		return []machine.Component{build(env)}
	})
	var seeds []gossip.Address
	for s := range min(i, 2) + 1 {
		seeds = append(seeds, address(s))
	}
	node.Input(protocol.Service, protocol.Join{Seeds: seeds})
}

// other returns a node that is not the given one.
func (c *cluster) other(than int) *simulation.Node {
	return c.world.Node(address((than + 1) % c.n))
}

func (c *cluster) leave(i int) {
	c.other(i).Input(protocol.Service, protocol.Leave{Address: address(i)})
}

func (c *cluster) down(i int) {
	c.other(i).Input(protocol.Service, protocol.Down{Address: address(i)})
}

// downAll downs nodes by commands at another one.
func (c *cluster) downAll(at int, nodes set) {
	if n := c.world.Node(address(at)); n != nil {
		for _, a := range c.addresses(nodes) {
			n.Input(protocol.Service, protocol.Down{Address: a})
		}
	}
}

// join starts a node that joins.
func (c *cluster) join() { c.start(c.n) }

func (c *cluster) crash(dead set) {
	for _, a := range c.addresses(dead) {
		c.world.Crash(a)
	}
}

// split cuts the sides off from each other.
func (c *cluster) split(sides []set) {
	var all [][]gossip.Address
	for _, s := range sides {
		all = append(all, c.addresses(s))
	}
	c.world.Network().Split(all...)
}

// cut lets nothing pass from some nodes to others.
func (c *cluster) cut(from, to set) {
	for _, f := range c.addresses(from) {
		for _, t := range c.addresses(to) {
			c.world.Network().Cut(f, t)
		}
	}
}

func (c *cluster) addresses(s set) []gossip.Address {
	var all []gossip.Address
	for i := range c.n + 1 {
		if s.has(i) {
			all = append(all, address(i))
		}
	}
	return all
}

// watch follows who hosts.
func (c *cluster) watch() {
	var hosts []gossip.Address
	for _, n := range c.world.Nodes() {
		if c.invariants.Hosts(n) {
			hosts = append(hosts, n.ID().Address)
		}
	}
	if !slices.Equal(hosts, c.hosts) {
		c.hosts, c.changed = hosts, c.world.Now()
	}
	c.world.After(look, c.watch)
}

// parts returns the groups of nodes that go on: those who host, together with whom they hold
// for a member that is up or leaving and that hosts as well.
func (c *cluster) parts() [][]*simulation.Node {
	var groups [][]*simulation.Node
	for _, n := range c.world.Nodes() {
		if !c.invariants.Hosts(n) {
			continue
		}
		i := slices.IndexFunc(groups, func(g []*simulation.Node) bool { return together(g[0], n) })
		if i < 0 {
			groups = append(groups, []*simulation.Node{n})
			continue
		}
		groups[i] = append(groups[i], n)
	}
	return groups
}

// together reports whether one of two nodes holds the other for a member of its cluster.
func together(a, b *simulation.Node) bool {
	return holds(a, b.ID()) || holds(b, a.ID())
}

func holds(n *simulation.Node, id gossip.NodeID) bool {
	m := membershipsim.MachineOf(n).State().Member(id)
	return m != nil && m.Status <= gossip.Leaving
}
