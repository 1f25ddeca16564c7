// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"errors"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation"
)

// A member is configured ([Config]), built as a component ([Component]) and served by its
// world ([Serve]). Operations on members and the [Operator] follow; [Settled] tells
// whether the members agree.

// Config configures the membership component of a node.
type Config struct {
	// Config holds the settings of the protocol; [Default] if its fence is zero.
	Config protocol.Config

	// Downing is the strategy of the node; [KeepMajority] if it has no name.
	Downing protocol.Downing

	// Zone, Roles and AppVersion describe the member.
	Zone       string
	Roles      []string
	AppVersion string

	// Speaks is the last version of the protocol between nodes that the node speaks; 4 if 0.
	Speaks uint16

	// Release is the release that the node runs.
	Release Release

	// Bootstrap is how nodes find contact points, nil where they are given seed nodes.
	Bootstrap *protocol.Bootstrap

	// Judged says that a failure detector outside of the node judges; the world needs
	// [Judges].
	Judged bool

	// Disk says that nodes keep their records on the disks of their addresses, and read
	// them when they start again.
	Disk bool
}

// filled returns the configuration with defaults for missing fields.
func (c Config) filled() Config {
	if c.Config.Fence == 0 {
		c.Config = protocol.Default()
	}
	if c.Downing.Config.Strategy == "" {
		c.Downing = KeepMajority()
	}
	if c.Speaks == 0 {
		c.Speaks = 4
	}
	return c
}

// Default returns the default settings of the protocol, so that a test can change some of
// them.
func Default() protocol.Config { return protocol.Default() }

// Fast returns the settings with which a node that died is replaced within about 3
// seconds.
func Fast() protocol.Config { return protocol.Fast() }

// KeepMajority returns the downing strategy keep-majority, decided at once.
func KeepMajority() protocol.Downing { return Decided(downing.Default()) }

// Decided returns the built-in downing strategy of a section, decided at once.
func Decided(c downing.Config) protocol.Downing {
	strategy, parameters, err := downing.BuiltIns().New(c)
	machine.Assert(err == nil, "the section is valid", "error", err)
	d := protocol.Downing{
		Config: c, Version: "1", Parameters: parameters, Class: c.Promise(strategy.Class()), Decide: strategy.DecideNow,
	}
	if fitted, ok := strategy.(downing.Fitted); ok {
		d.Misfit = fitted.Misfit
	}
	return d
}

// Minorities returns the sections of built-in strategies all of which may keep a side without
// a majority of the voters, in a cluster in which n nodes have the role [Core].
func Minorities(n int) []downing.Config {
	var all []downing.Config
	for _, oldest := range []downing.KeepOldestConfig{{}, {DownIfAlone: true}, {DownIfAlone: true, Role: Core}} {
		c := downing.Default()
		c.Strategy, c.KeepOldest = downing.KeepOldestName, oldest
		all = append(all, c)
	}
	c := downing.Default()
	c.Strategy, c.StaticQuorum = downing.StaticQuorumName, downing.StaticQuorumConfig{QuorumSize: n/2 + 1, Role: Core}
	return append(all, c)
}

// Core is the role that counts for [Minorities].
const Core = "core"

// AskedKeepMajority returns keep-majority as a strategy that the machine must ask, like
// one outside of it. [Serve] makes the world answer.
func AskedKeepMajority() protocol.Downing {
	d := KeepMajority()
	d.Config.Strategy, d.Decide = "asked-"+d.Config.Strategy, nil
	return d
}

// Component returns a function that builds the membership component of a
// node, with the codec of production. The world needs [Serve].
func Component(c Config) func(simulation.Env) machine.Component {
	c = c.filled()
	return func(env simulation.Env) machine.Component {
		detector, err := fd.NewFactory(c.Config.FailureDetector)
		machine.Assert(err == nil, "the failure detector is a known one", "error", err)
		self := gossip.Member{
			Node: env.Self, Zone: c.Zone, Roles: c.Roles, AppVersion: c.AppVersion,
			Protocol: gossip.ProtocolRange{Min: 1, Max: c.Speaks}, Unknown: c.Release.says(env.Self),
		}
		deps := protocol.Dependencies{Rand: env.Rand, Detector: detector, Downing: c.Downing, Bootstrap: c.Bootstrap}
		if c.Judged {
			deps.Judge = JudgeName
		}
		if c.Disk {
			remember(&deps, env.Disk)
		}
		m, err := protocol.New(c.Config, self, deps)
		machine.Assert(err == nil, "the configuration is valid", "error", err)
		return machine.Component{Name: "membership", Service: protocol.Service, Machine: m, Codec: c.Release.codec()}
	}
}

// remember gives a machine the record on its disk, and has it write new ones there.
func remember(deps *protocol.Dependencies, d simulation.Disk) {
	deps.Remember = true
	if record, ok := d.Value.(protocol.Record); ok {
		deps.Record = record
	}
}

// Serve makes a world carry out what membership asks for: it dials addresses back, blocks
// removed nodes, tells blocked nodes so, ends nodes that say that they stop, and answers
// calls for downing decisions.
func Serve(w *simulation.World) {
	w.Carry(func(n *simulation.Node, _ *machine.Component, e machine.Effect) bool {
		switch e := e.(type) {
		case protocol.Probe:
			probe(w, n, e)
		case protocol.Block:
			w.Network().Block(n, e.Node)
		default:
			return false
		}
		return true
	})
	w.Network().OnRefused(func(peer *simulation.Node, by gossip.NodeID) {
		peer.Input(protocol.Service, protocol.PeerRefused{Peer: by, Removed: true, Reason: "removed"})
	})
	w.Network().OnMisdialled(func(at *simulation.Node, by gossip.NodeID) {
		at.Input(protocol.Service, protocol.WronglyDialled{By: by})
	})
	w.EndsOn(func(event any) string {
		if s, ok := event.(component.Stopping); ok {
			return "stopped: " + s.Reason.String()
		}
		return ""
	})
	w.Strategies().Answer(protocol.CallDowning, func(_ *simulation.Node, request any) (any, error) {
		return downing.KeepMajority{}.DecideNow(request.(protocol.DowningRequest).View)
	})
	w.Strategies().Bound(protocol.CallDowning, simulation.Pace{Most: 3, Per: time.Second})
	w.Disks().Keep(protocol.CallRemember, protocol.ErrRecordLost)
	w.Strategies().Garble(protocol.CallDowning, GarbleDowning(downing.KeepMajority{}.Class()))
	w.Strategies().Recorded(downing.Decision{})
}

// Leave has the node at an address leave its cluster in order, as soon as it runs.
// Without a node there it does nothing.
func Leave(w *simulation.World, a gossip.Address) {
	w.Input(a, protocol.Service, protocol.Leave{Address: a})
}

// errNoAnswer is the result of a probe that no node answered.
var errNoAnswer = errors.New("simulation: nobody answered")

// probe dials an address: the answer takes one way there and one back.
func probe(w *simulation.World, n *simulation.Node, p protocol.Probe) {
	answer := protocol.Probed{Address: p.Address, Err: errNoAnswer}
	limit := p.Limit
	there := w.Node(p.Address)
	if there != nil && !there.Frozen() && w.Network().Connected(n.ID().Address, p.Address) && w.Network().Connected(p.Address, n.ID().Address) {
		if both := w.Network().Latency() + w.Network().Latency(); both < p.Limit {
			answer, limit = protocol.Probed{Address: p.Address, Node: there.ID()}, both
		}
	}
	w.After(limit, func() { n.Input(protocol.Service, answer) })
}

// MachineOf returns the membership machine of a node, directly or through a method
// Membership of the component around it.
func MachineOf(n *simulation.Node) *protocol.Machine {
	switch m := n.Machine(protocol.Service).(type) {
	case *protocol.Machine:
		return m
	case interface{ Membership() *protocol.Machine }:
		return m.Membership()
	}
	return nil
}

// Operator does what people and programs around a cluster do: it gives every node the
// same list of seed nodes, and starts nodes again that ended by themselves or crashed.
type Operator struct {
	// Seeds are the seed nodes, of which more than half found the first cluster.
	Seeds []gossip.Address

	// RestartAfter is the time after which a node that ended by itself is started again.
	// Zero means never.
	RestartAfter time.Duration

	// ReviveAfter is the time after which a node that crashed is started again. Zero
	// means never.
	ReviveAfter time.Duration

	world *simulation.World
}

// Operate makes o operate a world.
func (o *Operator) Operate(w *simulation.World) {
	o.world = w
	w.Observe(o.observe)
}

func (o *Operator) observe(e simulation.Observation) {
	n := e.Node
	switch ended := e.Event.(type) {
	case simulation.Started:
		o.world.After(0, func() { n.Input(protocol.Service, protocol.Join{Seeds: o.Seeds}) })
	case simulation.Ended:
		after := o.RestartAfter
		if ended.Why == simulation.Crashed {
			after = o.ReviveAfter
		}
		if after > 0 {
			o.world.After(after, func() {
				if o.world.Node(n.ID().Address) == nil {
					o.world.Restart(n.ID().Address)
				}
			})
		}
	}
}

// Settled reports whether every live node is Up in a state that all of them hold and know
// to be held by all, with one leader and no other member. The error says what is missing.
func Settled(w *simulation.World) error {
	nodes := w.Nodes()
	var first *protocol.Machine
	for _, n := range nodes {
		m := MachineOf(n)
		if first == nil {
			first = m
		}
		if err := settled(n, m, first, len(nodes)); err != nil {
			return err
		}
	}
	return nil
}
