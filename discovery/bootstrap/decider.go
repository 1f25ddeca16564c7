// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/quorate/quorate/discovery"
)

// First the contract: the decider ([JoinDecider]), its input ([Observations]) and its answer
// ([Decision]), which is checked. Then the built-in rule ([LowestAddress]), and the order of
// addresses on which the rule rests ([Compare]).

// JoinDecider decides what a node that belongs to no cluster does next.
//
// A node that has found no cluster yet calls Decide after a round of questions to the contact points, one call at a
// time and once in membership.join-interval at most, from a goroutine of its own. A call that is not answered within
// its context counts as an error. On an error the node goes on asking the contact points, joins no cluster and forms
// none. Each node asks a decider of its own at the same time, and at most one of these deciders should say [Form]. A
// decider that promises that equal observations get equal decisions says so ([Classed]).
type JoinDecider interface {
	Decide(ctx context.Context, o Observations) (Decision, error)
}

// Class is what a decider promises beyond the interface. The zero value promises nothing.
type Class struct {
	// Pure: equal observations get equal decisions, at any time and on any node. A decider
	// that asks others, or reads what may change, is not pure. The conformance suite in
	// bootstraptest demands it of deciders that declare it.
	Pure bool
}

// Classed is implemented by deciders that promise something about themselves.
type Classed interface {
	// Class is constant, does not block, and may be called at any time.
	Class() Class
}

// ClassOf returns the class of d if it implements [Classed], otherwise the zero class.
func ClassOf(d JoinDecider) Class {
	if c, ok := d.(Classed); ok {
		return c.Class()
	}
	return Class{}
}

// Observations are what a node knows of the contact points.
type Observations struct {
	// Service is the name of the service that was looked up.
	Service string
	// Self is this node's own contact point.
	Self discovery.Target
	// Required is how many contact points must be found and answer before a cluster may be
	// formed.
	Required int
	// StableMargin is for how long the set of contact points must be unchanged before a
	// cluster may be formed, and Stable for how long the set has been unchanged.
	StableMargin, Stable time.Duration
	// Points are the contact points that were found, sorted by [Compare], each once.
	Points []Observed
}

// Observed is one contact point.
type Observed struct {
	// Point is where the contact point is.
	Point discovery.Target
	// Answered is how long ago the contact point answered last; negative if it never has, or
	// too long ago to count. The contact point of this node itself has answered just now.
	Answered time.Duration
	// SeedNodes are members of a cluster that goes on, which the contact point named in its
	// last answer.
	SeedNodes []discovery.Target
}

// Action is what a node does next.
type Action uint8

// The actions.
const (
	// Probe: go on to ask the contact points.
	Probe Action = iota
	// Join: join the cluster of some seed nodes.
	Join
	// Form: form a cluster. The node does so only when [Search.Missing] names nothing, and
	// when the other contact points have given it their votes.
	Form
)

// String returns the action in a word.
func (a Action) String() string {
	switch a {
	case Join:
		return "join"
	case Form:
		return "form"
	case Probe:
	}
	return "probe"
}

// Decision is the answer of a [JoinDecider].
type Decision struct {
	// Action is what the node does next; zero is [Probe].
	Action Action
	// SeedNodes are the nodes to join, with [Join]: some of those that the observations name.
	SeedNodes []discovery.Target
	// Reason gives the reason of the decision in one sentence, for people.
	Reason string
}

// Check returns nil if the observations allow the decision, otherwise the first fault:
//
//	C1  the action exists; Join has seed nodes, and no other action has any;
//	C2  every seed node was named by a contact point, and there are no more of them than
//	    were named;
//	C3  Form: as many contact points as are required were found, none of them names a
//	    member of a cluster, and the margin has passed.
//
// A node uses no decision that does not pass, wherever the decider lives, and asks the
// contact points on.
func (d Decision) Check(o Observations) error {
	switch {
	case d.Action > Form:
		return fmt.Errorf("bootstrap: there is no action %d", d.Action)
	case (d.Action == Join) != (len(d.SeedNodes) > 0):
		return fmt.Errorf("bootstrap: action %v with %d seed nodes", d.Action, len(d.SeedNodes))
	}
	seeds := o.seedNodes()
	if len(d.SeedNodes) > len(seeds) {
		return fmt.Errorf("bootstrap: %d seed nodes are to be joined, %d are named", len(d.SeedNodes), len(seeds))
	}
	for _, n := range d.SeedNodes {
		if !slices.Contains(seeds, n) {
			return fmt.Errorf("bootstrap: %v is to be joined, which no contact point has named", n)
		}
	}
	if d.Action == Form {
		return o.allowForm(seeds)
	}
	return nil
}

// allowForm reports why a cluster may not be formed, where contact points name these seed nodes.
func (o Observations) allowForm(seeds []discovery.Target) error {
	switch {
	case len(o.Points) < o.Required:
		return fmt.Errorf("bootstrap: form with %d contact points, %d are required", len(o.Points), o.Required)
	case len(seeds) > 0:
		return fmt.Errorf("bootstrap: form while %v is in a cluster", seeds[0])
	case o.Stable < o.StableMargin:
		return fmt.Errorf("bootstrap: form after %v, the margin is %v", o.Stable, o.StableMargin)
	}
	return nil
}

// seedNodes returns the seed nodes that the contact points name, in the order of the points.
func (o Observations) seedNodes() []discovery.Target {
	var all []discovery.Target
	for _, p := range o.Points {
		all = append(all, p.SeedNodes...)
	}
	return all
}

// LowestAddress is the built-in rule: the node with the lowest address of the contact points
// that answer forms a cluster, all other nodes join.
type LowestAddress struct{}

var (
	_ JoinDecider = LowestAddress{}
	_ Classed     = LowestAddress{}
)

// Class says that the rule is pure.
func (LowestAddress) Class() Class { return Class{Pure: true} }

// Decide implements [JoinDecider].
func (l LowestAddress) Decide(_ context.Context, o Observations) (Decision, error) {
	return l.DecideNow(o), nil
}

// DecideNow decides from the observations alone, at once.
func (LowestAddress) DecideNow(o Observations) Decision {
	if seeds := o.seedNodes(); len(seeds) > 0 {
		return Decision{Action: Join, SeedNodes: seeds, Reason: fmt.Sprintf("%v is in a cluster that goes on", seeds[0])}
	}
	answering := o.answering()
	switch {
	case len(answering) < o.Required:
		return Decision{Reason: fmt.Sprintf("%d contact points answer, %d are required", len(answering), o.Required)}
	case o.Stable < o.StableMargin:
		return Decision{Reason: fmt.Sprintf("the contact points have not been unchanged for %v", o.StableMargin)}
	case Compare(answering[0].Point, o.Self) != 0:
		return Decision{Reason: fmt.Sprintf("%v has a lower address, and forms the cluster", answering[0].Point)}
	}
	return Decision{Action: Form, Reason: fmt.Sprintf("%v has the lowest address of %d contact points", o.Self, len(answering))}
}

// answering returns the contact points that have answered.
func (o Observations) answering() []Observed {
	return slices.DeleteFunc(slices.Clone(o.Points), func(p Observed) bool { return p.Answered < 0 })
}

// Compare orders contact points by their addresses as numbers: 10.0.0.9 comes before
// 10.0.0.10, and an address of version 4 before one of version 6. Names come after
// addresses, by their text. Then the port decides, as a number.
func Compare(a, b discovery.Target) int {
	x, y := addressOf(a), addressOf(b)
	switch {
	case x.IsValid() != y.IsValid():
		if x.IsValid() {
			return -1
		}
		return 1
	case !x.IsValid():
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port))
	}
	return cmp.Or(x.Compare(y), cmp.Compare(a.Port, b.Port))
}

// addressOf returns the IP address of a contact point, the zero Addr if it has only a name.
func addressOf(t discovery.Target) netip.Addr {
	if t.IP.IsValid() {
		return t.IP.Unmap()
	}
	ip, err := netip.ParseAddr(t.Host)
	if err != nil {
		return netip.Addr{}
	}
	return ip.Unmap()
}
