// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation"
)

// First the answers to lookups ([Discovered.Serve], [Discovered.answer]), then how the answers
// that one node gets for a while are drawn ([Discovered.draw]).

// Discovered answers the lookups of the nodes of a world. Until RightFrom each node gets answers
// of its own, which are often wrong; from then on all nodes get the right one.
type Discovered struct {
	// Nodes are all contact points: the right answer.
	Nodes []gossip.Address

	// Find, when not nil, says which of Nodes are found by a lookup whose answer is right.
	Find func() ([]gossip.Address, error)

	// Amiss is the chance, from 0 to 1, that the answers which are drawn for a node and the
	// next while are wrong.
	Amiss float64

	// Groups are sets of contact points. One kind of wrong answer gives a node a group to
	// which it belongs, as if there were no other nodes.
	Groups [][]gossip.Address

	// Grouped says that every wrong answer is such a group.
	Grouped bool

	// RightFrom is the time of the world from which on all answers are right.
	RightFrom time.Duration

	// Lookups counts the answers before and after RightFrom, Wrong those of another length
	// than the right one, and the errors.
	Lookups, Wrong int

	world *simulation.World
	rand  *rand.Rand
	views map[gossip.Address]*view
}

// view holds how the lookups of one node are answered until a time.
type view struct {
	tell  func(self gossip.Address) ([]discovery.Target, error)
	until time.Duration
	last  []discovery.Target // The last answer that was no error.
}

// sourceDiscovered is the number of the source of randomness for answers to lookups.
const sourceDiscovered = 7

// errNotFound is the answer of a lookup that fails.
var errNotFound = errors.New("simulation: the registry is not available")

// Serve makes d answer the lookups of a world, and the questions to deciders.
func (d *Discovered) Serve(w *simulation.World) {
	d.world, d.rand, d.views = w, w.Source(sourceDiscovered), make(map[gossip.Address]*view)
	strategies := w.Strategies()
	strategies.Answer(protocol.CallLookup, func(n *simulation.Node, _ any) (any, error) {
		return d.answer(n.ID().Address)
	})
	strategies.Garble(protocol.CallLookup, func(r *rand.Rand, _ any) any {
		return []any{nil, "contact points", discovery.Targets{List: []discovery.Target{{Host: "A B", Port: 1}}}}[r.IntN(3)]
	})
	// The figures are those of docs/plugins.md, "The node sets the rate of questions". A member may look up for a node
	// that asks it.
	strategies.Bound(protocol.CallLookup, simulation.Pace{Most: 2, Per: bootstrap.Default().Interval})
	strategies.Bound(protocol.CallJoinDecider, simulation.Pace{Most: 1, Per: protocol.Default().JoinInterval})
	strategies.Answer(protocol.CallJoinDecider, func(_ *simulation.Node, request any) (any, error) {
		return d.decide(request.(bootstrap.Observations)), nil
	})
	strategies.Garble(protocol.CallJoinDecider, func(r *rand.Rand, _ any) any {
		return []any{
			nil,
			bootstrap.Decision{Action: 7},
			bootstrap.Decision{Action: bootstrap.Join},
			bootstrap.Decision{Action: bootstrap.Join, SeedNodes: []discovery.Target{{Host: "10.9.9.9", Port: 1}}},
		}[r.IntN(4)]
	})
	strategies.Recorded(discovery.Targets{}, bootstrap.Decision{})
}

// decide answers the question of a decider: by the built-in rule, or, while discovery is wrong, at random, what
// makes no sense, whether it is allowed or not: to form a cluster, to join another one each time, to wait. Where other
// discovery is tried, that alone is wrong.
func (d *Discovered) decide(o bootstrap.Observations) bootstrap.Decision {
	rule := bootstrap.LowestAddress{}.DecideNow(o)
	if d.Find != nil || d.world.Now() >= d.RightFrom {
		return rule
	}
	drawn := bootstrap.Decision{Reason: fmt.Sprintf("drawn after %v", o.Stable)}
	switch d.rand.IntN(6) {
	case 0, 1:
		drawn.Action = bootstrap.Form
	case 2:
		drawn.Action = bootstrap.Join
		for _, p := range o.Points {
			if len(p.SeedNodes) > 0 && (len(drawn.SeedNodes) == 0 || d.rand.IntN(2) == 0) {
				drawn.SeedNodes = p.SeedNodes
			}
		}
	case 3: // Wait.
	default:
		return rule
	}
	return drawn
}

// answer answers a lookup of the node at an address.
func (d *Discovered) answer(self gossip.Address) (any, error) {
	d.Lookups++
	if d.world.Now() >= d.RightFrom {
		list, err := d.right(self)
		if err != nil {
			return nil, err
		}
		return discovery.Targets{List: list, Reason: "all"}, nil
	}
	v := d.views[self]
	if v == nil {
		v = &view{}
		d.views[self] = v
	}
	if v.tell == nil || d.world.Now() >= v.until {
		v.tell, v.until = d.draw(v, self), d.world.Now()+between(d.rand, time.Second, 25*time.Second)
	}
	list, err := v.tell(self)
	if err != nil || len(list) != len(d.Nodes) {
		d.Wrong++
	}
	if err != nil {
		return nil, err
	}
	v.last = list
	return discovery.Targets{List: list, Reason: "some"}, nil
}

// right is the answer when nothing is amiss.
func (d *Discovered) right(gossip.Address) ([]discovery.Target, error) {
	if d.Find == nil {
		return targets(d.Nodes), nil
	}
	found, err := d.Find()
	return targets(found), err
}

// kinds is the number of kinds of wrong answers without the groups.
const kinds = 10

// draw draws how the lookups of a node are answered for a while.
func (d *Discovered) draw(v *view, self gossip.Address) func(gossip.Address) ([]discovery.Target, error) {
	fixed := func(list []discovery.Target) func(gossip.Address) ([]discovery.Target, error) {
		return func(gossip.Address) ([]discovery.Target, error) { return list, nil }
	}
	if d.rand.Float64() >= d.Amiss {
		return d.right
	}
	some, before := d.some(), v.last
	kind := d.rand.IntN(13)
	if d.Grouped {
		kind = kinds
	}
	switch kind {
	case 0: // No contact points.
		return fixed(nil)
	case 1: // An error.
		return func(gossip.Address) ([]discovery.Target, error) { return nil, errNotFound }
	case 2: // The answer of before, for longer.
		return fixed(before)
	case 3: // Other contact points at each lookup.
		return func(gossip.Address) ([]discovery.Target, error) { return d.some(), nil }
	case 4: // All nodes but the one that asks.
		return func(self gossip.Address) ([]discovery.Target, error) {
			return slices.DeleteFunc(targets(d.Nodes), func(t discovery.Target) bool { return t.Host == self.Host }), nil
		}
	case 5: // Only the node that asks.
		return func(self gossip.Address) ([]discovery.Target, error) { return targets([]gossip.Address{self}), nil }
	case 6: // Nodes that do not exist, and some that do.
		return fixed(append(some, discovery.Target{Host: "10.9.9.9", Port: 1}, discovery.Target{Host: "elsewhere", Port: 7946}))
	case 7: // All nodes twice, the second time without a port.
		list := targets(d.Nodes)
		for _, t := range targets(d.Nodes) {
			list = append(list, discovery.Target{Host: t.Host})
		}
		return fixed(list)
	case 8: // The node that asks, and some others.
		return fixed(append(targets([]gossip.Address{self}), some...))
	case 9: // Some contact points and others by turns.
		turns, others := 0, d.some()
		return func(gossip.Address) ([]discovery.Target, error) {
			turns++
			return [][]discovery.Target{some, others}[turns%2], nil
		}
	default: // A group, which other nodes of it may get as well.
		of := slices.DeleteFunc(slices.Clone(d.Groups), func(g []gossip.Address) bool { return !slices.Contains(g, self) })
		if len(of) == 0 {
			return fixed(some)
		}
		return fixed(targets(of[d.rand.IntN(len(of))]))
	}
}

// some draws some of the contact points.
func (d *Discovered) some() []discovery.Target {
	list := targets(d.Nodes)
	d.rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:d.rand.IntN(len(list)+1)]
}

func targets(nodes []gossip.Address) []discovery.Target {
	var list []discovery.Target
	for _, a := range nodes {
		list = append(list, discovery.Target{Host: a.Host, Port: a.Port})
	}
	return list
}
