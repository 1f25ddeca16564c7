// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

// ID numbers the components of one [Group] from zero, in the order in which
// they were attached.
type ID int

// Attached is fed to the components of a node when another component is attached while
// the node is running. The new component has missed earlier events: a component that
// publishes a state, and not only changes, publishes its present state again.
type Attached struct {
	Name    string
	Service Service
}

// Carrier carries out the effects of the components of a [Group]. Carry is called
// within [Group.Step], in the order of the effects. For a [Publish] it is called when
// the event is queued for the other components, so that subscribers see events in the
// same order as components.
type Carrier interface {
	Carry(from ID, e Effect)
}

// maxCascade bounds how many inputs one input may cause among the components of a
// node. Components that answer each other's events for ever are a defect.
const maxCascade = 1 << 16

// Group holds the components of one node, and alone defines in which order they are
// fed. A [Driver] has one, and so has each node of a simulation.
//
// One input is fed at a time. Events that a component publishes are queued; after the
// effects of its step have been carried out, the queue is fed in order, each event to
// every other component in the order in which they were attached. So publishing never
// recurses and never waits, and two components that publish to each other cannot block
// each other.
//
// A Group belongs to one goroutine.
type Group struct {
	components []Component
	started    bool
	stepping   bool
	out        Outbox
	queue      []delivery
	carrier    Carrier
}

// delivery is an input in a group's queue. An event goes to every component except its
// source, any other input to one component.
type delivery struct {
	to    ID
	event bool // The input is an event, and to is its source.
	in    Input
}

// NewGroup returns a group without components. Carrier will carry out their effects.
func NewGroup(carrier Carrier) *Group { return &Group{carrier: carrier} }

// Components returns the components, indexed by their [ID]. The slice must
// not be modified.
func (g *Group) Components() []Component { return g.components }

// Attach adds a component. After [Group.Start] the component is fed [Started], and the
// others [Attached]. Attach panics when the name or the service is taken or the
// machine is nil.
func (g *Group) Attach(now Now, c Component) ID {
	Assert(c.Machine != nil, "a component has a machine", "component", c.Name)
	for _, other := range g.components {
		Assert(other.Name != c.Name && (c.Service == 0 || other.Service != c.Service),
			"names and services are unique on a node", "component", c.Name, "service", c.Service)
	}
	id := ID(len(g.components))
	g.components = append(g.components, c)
	if !g.started {
		return id
	}
	g.queue = append(g.queue, delivery{to: id, in: Started{}})
	for other := range id {
		g.queue = append(g.queue, delivery{to: other, in: Attached{Name: c.Name, Service: c.Service}})
	}
	g.drain(now)
	return id
}

// Start feeds [Started] to every component, and then the events that these steps
// published, so that Started is the first input of each.
func (g *Group) Start(now Now) {
	Assert(!g.started, "a group is started once")
	g.started = true
	for id := range g.components {
		g.queue = append(g.queue, delivery{to: ID(id), in: Started{}})
	}
	g.drain(now)
}

// Step feeds one input to one component, and then everything that it caused among the
// components of the node.
func (g *Group) Step(now Now, to ID, in Input) {
	g.queue = append(g.queue, delivery{to: to, in: in})
	g.drain(now)
}

// Enqueue adds an input to the queue. It is for a [Carrier] that answers the component
// whose effect it carries out.
func (g *Group) Enqueue(to ID, in Input) {
	Assert(g.stepping, "inputs are put in line within a step only", "to", to)
	g.queue = append(g.queue, delivery{to: to, in: in})
}

func (g *Group) drain(now Now) {
	Assert(g.started && !g.stepping, "a group is stepped after its start and by one goroutine",
		"started", g.started, "stepping", g.stepping)
	g.stepping = true
	for next := 0; next < len(g.queue); next++ {
		Assert(next < maxCascade, "components do not answer each other for ever", "deliveries", next)
		d := g.queue[next]
		if !d.event {
			g.feed(now, d.to, d.in)
			continue
		}
		for id := range g.components {
			if ID(id) != d.to {
				g.feed(now, ID(id), d.in)
			}
		}
	}
	clear(g.queue)
	g.queue = g.queue[:0]
	g.stepping = false
}

func (g *Group) feed(now Now, to ID, in Input) {
	g.components[to].Machine.Step(now, in, &g.out)
	for _, e := range g.out.Effects() {
		if p, ok := e.(Publish); ok && len(g.components) > 1 {
			g.queue = append(g.queue, delivery{to: to, event: true, in: p.Event})
		}
		g.carrier.Carry(to, e)
	}
	g.out.Reset()
}
