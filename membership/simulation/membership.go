// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"slices"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/wire"
	"github.com/quorate/quorate/membership/machine"
	"github.com/quorate/quorate/membership/protocol"
)

// MembershipConfig says what the membership component of a node is like.
type MembershipConfig struct {
	// Config is [protocol.Default] when its fence is zero.
	Config protocol.Config

	// Downing is [KeepMajority] when its strategy has no name.
	Downing protocol.Downing

	Zone       string
	Roles      []string
	AppVersion string

	// Disk says that nodes remember on the disks of their addresses what they must
	// not forget when they start again.
	Disk bool
}

// KeepMajority returns the downing strategy keep-majority, decided at once.
func KeepMajority() protocol.Downing {
	strategy := downing.KeepMajority{}
	return protocol.Downing{
		Config: downing.Default(), Version: "1", Class: strategy.Class(), Decide: strategy.DecideNow,
	}
}

// AskedKeepMajority returns keep-majority as a strategy that has to be asked:
// a foreign one. [ServeMembership] makes the world answer it.
func AskedKeepMajority() protocol.Downing {
	d := KeepMajority()
	d.Config.Strategy, d.Decide = "asked-"+d.Config.Strategy, nil
	return d
}

// Membership returns a function that builds the membership component of a
// node, with the codec of production. The world needs [ServeMembership].
func Membership(c MembershipConfig) func(Env) machine.Component {
	if c.Config.Fence == 0 {
		c.Config = protocol.Default()
	}
	if c.Downing.Config.Strategy == "" {
		c.Downing = KeepMajority()
	}
	return func(env Env) machine.Component {
		detector, err := fd.NewFactory(c.Config.FailureDetector)
		machine.Assert(err == nil, "the failure detector is a known one", "error", err)
		self := gossip.Member{
			Node: env.Self, Zone: c.Zone, Roles: c.Roles, AppVersion: c.AppVersion,
			Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
		}
		deps := protocol.Deps{Rand: env.Rand, Detector: detector, Downing: c.Downing}
		if c.Disk {
			remember(&deps, env.Disk)
		}
		m, err := protocol.New(c.Config, self, deps)
		machine.Assert(err == nil, "the configuration is valid", "error", err)
		return machine.Component{Name: "membership", Service: protocol.Service, Machine: m, Codec: wire.Codec{}}
	}
}

// remember gives a machine what its disk holds, and has it write there what it
// must not forget.
func remember(deps *protocol.Deps, d Disk) {
	deps.Remember = true
	if cluster, ok := d.Value.(gossip.ClusterID); ok {
		deps.Born = cluster.Born + 1
	}
}

// ServeMembership makes a world carry out what membership asks for: it dials
// addresses back, blocks removed nodes, tells who is blocked, ends nodes that
// say that they stop, and answers calls for downing decisions.
func ServeMembership(w *World) {
	w.Carry(func(n *Node, _ *machine.Component, e machine.Effect) bool {
		switch e := e.(type) {
		case protocol.Probe:
			w.probe(n, e)
		case protocol.Block:
			w.Block(n, e.Node)
		default:
			return false
		}
		return true
	})
	w.OnRefused(func(peer *Node, by gossip.NodeID) {
		peer.Input(protocol.Service, protocol.PeerRefused{Peer: by, Removed: true, Reason: "removed"})
	})
	w.EndsOn(func(event any) string {
		if s, ok := event.(protocol.Stopping); ok {
			return "stopped: " + s.Reason.String()
		}
		return ""
	})
	w.Answer(protocol.CallDowning, func(_ *Node, request any) (any, error) {
		return downing.KeepMajority{}.DecideNow(request.(protocol.DowningRequest).View)
	})
	w.Keeps(protocol.CallRemember)
	w.Garble(protocol.CallDowning, GarbleDowning(downing.KeepMajority{}.Class()))
	w.Recorded(downing.Decision{})
}

// errNoAnswer is the answer to a probe that found nobody.
var errNoAnswer = errors.New("simulation: nobody answered")

// probe dials an address: the answer takes one way there and one back.
func (w *World) probe(n *Node, p protocol.Probe) {
	answer := protocol.Probed{Address: p.Address, Err: errNoAnswer}
	limit := p.Limit
	there := w.Node(p.Address)
	if there != nil && !there.Frozen() && w.Connected(n.place.address, p.Address) && w.Connected(p.Address, n.place.address) {
		if both := time.Duration(w.latency() + w.latency()); both < p.Limit {
			answer, limit = protocol.Probed{Address: p.Address, Node: there.ID()}, both
		}
	}
	w.After(limit, func() { n.Input(protocol.Service, answer) })
}

// MembershipOf returns the membership machine of a node, also where something is
// built around it that has a method Membership.
func MembershipOf(n *Node) *protocol.Machine {
	switch m := n.Machine(protocol.Service).(type) {
	case *protocol.Machine:
		return m
	case interface{ Membership() *protocol.Machine }:
		return m.Membership()
	}
	return nil
}

// Operator does what the people and programs around a cluster do: it tells
// every new node whom to join, starts nodes again that ended by themselves or
// whose contacts are all gone, and has the first seed node form a cluster when
// nobody is a member any more.
//
// The first seed node has the privilege to form a cluster. Only when no
// cluster exists is it given it: a process that forms a cluster whenever it
// starts cut off from the others would make a second one.
type Operator struct {
	// Seeds are the seed nodes; the first is the one that forms a cluster.
	Seeds []gossip.Address

	// RestartAfter is the time after which a node that ended by itself is
	// started again. Zero: it is not.
	RestartAfter time.Duration

	// ReviveAfter is the same for a node that crashed.
	ReviveAfter time.Duration

	world *World
	told  map[gossip.NodeID][]gossip.Address // Whom a node was told to join.
}

// Operate makes o look after a world.
func (o *Operator) Operate(w *World) {
	o.world = w
	o.told = make(map[gossip.NodeID][]gossip.Address)
	w.Observe(o.observe)
	w.Check(o)
}

func (o *Operator) observe(e Observation) {
	n := e.Node
	switch ended := e.Event.(type) {
	case Began:
		o.world.After(0, func() { o.join(n) })
	case Ended:
		delete(o.told, n.id)
		after := o.RestartAfter
		if ended.Why == crashed {
			after = o.ReviveAfter
		}
		if after > 0 {
			o.world.After(after, func() {
				if o.world.Node(n.place.address) == nil {
					o.world.Restart(n.place.address)
				}
			})
		}
	}
}

// contactsMax is how many members a node is told.
const contactsMax = 5

// join tells a node to join the members that there are, or, without any, to
// form a cluster with the seed nodes.
func (o *Operator) join(n *Node) {
	seeds := o.members()
	if len(seeds) == 0 {
		seeds = o.Seeds
	} else if i := slices.Index(seeds, n.place.address); i >= 0 {
		seeds = slices.Delete(seeds, i, i+1)
	}
	seeds = seeds[:min(len(seeds), contactsMax)]
	o.told[n.id] = seeds
	n.Input(protocol.Service, protocol.Join{Seeds: seeds})
}

// members returns the addresses of the nodes that are members.
func (o *Operator) members() []gossip.Address {
	var members []gossip.Address
	for _, n := range o.world.Nodes() {
		if isMember(n) {
			members = append(members, n.place.address)
		}
	}
	return members
}

func isMember(n *Node) bool {
	m := MembershipOf(n)
	return m != nil && m.State().Member(n.id) != nil
}

// Stepped does nothing.
func (o *Operator) Stepped(*World, *Node) error { return nil }

// patience is for how long a node may look for a cluster before the operator
// looks whether it can ever find one.
const patience = 15 * time.Second

// Second starts nodes again that nobody they know can help: either no node
// is a member, or none of those that they were told is one.
func (o *Operator) Second(w *World) error {
	members := o.members()
	for _, n := range w.Nodes() {
		if n.frozen || n.Age() < patience || isMember(n) {
			continue
		}
		hopeless := !slices.ContainsFunc(o.told[n.id], func(a gossip.Address) bool { return slices.Contains(members, a) })
		if hopeless && (len(members) > 0 || n.place.address == o.Seeds[0]) {
			w.Log("operator: %v knows no member", n.id)
			w.Restart(n.place.address)
		}
	}
	return nil
}

var _ Checker = (*Operator)(nil)

// Settled reports whether every node that lives is Up in a state that all of
// them hold and know to be held by all, with one leader, and nobody else is a
// member. The error says what is missing.
func Settled(w *World) error {
	nodes := w.Nodes()
	var first *protocol.Machine
	for _, n := range nodes {
		m := MembershipOf(n)
		if first == nil {
			first = m
		}
		if err := settled(n, m, first, len(nodes)); err != nil {
			return err
		}
	}
	return nil
}
