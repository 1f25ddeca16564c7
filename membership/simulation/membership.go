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
		m, err := protocol.New(c.Config, self, protocol.Deps{Rand: env.Rand, Detector: detector, Downing: c.Downing})
		machine.Assert(err == nil, "the configuration is valid", "error", err)
		return machine.Component{Name: "membership", Service: protocol.Service, Machine: m, Codec: wire.Codec{}}
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
		return downing.KeepMajority{}.DecideNow(request.(downing.View))
	})
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

// MembershipOf returns the membership machine of a node.
func MembershipOf(n *Node) *protocol.Machine {
	m, _ := n.Machine(protocol.Service).(*protocol.Machine)
	return m
}

// Operator does what the people and programs around a cluster do: it tells
// every new node to join, starts nodes again that ended by themselves, and
// forms the cluster anew, through the first seed node, when nobody is a
// member any more.
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

	world *World
}

// Operate makes o look after a world.
func (o *Operator) Operate(w *World) {
	o.world = w
	w.Observe(o.observe)
	w.Check(o)
}

func (o *Operator) observe(e Observation) {
	n := e.Node
	switch ended := e.Event.(type) {
	case Began:
		o.world.After(0, func() { o.join(n) })
	case Ended:
		if ended.Why != "crashed" && o.RestartAfter > 0 {
			o.world.After(o.RestartAfter, func() {
				if o.world.Node(n.place.address) == nil {
					o.world.Restart(n.place.address)
				}
			})
		}
	}
}

func (o *Operator) join(n *Node) {
	seeds := slices.Clone(o.Seeds)
	if n.place.address == seeds[0] && o.formed() && len(seeds) > 1 {
		seeds = append(seeds[1:], seeds[0])
	}
	n.Input(protocol.Service, protocol.Join{Seeds: seeds})
}

// formed reports whether anybody is a member.
func (o *Operator) formed() bool {
	return slices.ContainsFunc(o.world.Nodes(), func(n *Node) bool {
		m := MembershipOf(n)
		return m != nil && m.State().Member(n.id) != nil
	})
}

// Stepped does nothing.
func (o *Operator) Stepped(*World, *Node) error { return nil }

// formEvery is how often the operator looks whether a cluster exists.
const formEvery = 15

// Second has the first seed node started again when nobody is a member and
// it has had its chance.
func (o *Operator) Second(w *World) error {
	first := w.Node(o.Seeds[0])
	if int(w.Now()/time.Second)%formEvery == 0 && first != nil && !first.Frozen() &&
		first.Age() > formEvery*time.Second && !o.formed() {
		w.Log("operator: nobody is a member, the first seed node forms a cluster")
		w.Restart(o.Seeds[0])
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
