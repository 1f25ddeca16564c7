// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/quorate/quorate/gossip"

// Counts are what cells have counted since they were created. They only grow.
type Counts struct {
	Sent     uint64 // Messages of this node that were accepted.
	Received uint64 // Messages of other nodes that were delivered, each once.
	Handled  uint64 // Messages that entities of this node have processed, their failures included.
	// Refused are messages that no entity of this node processed, by [Code]: what is
	// refused before it is accepted, and what is refused after.
	Refused [Codes]uint64

	Started     uint64 // Instances whose start began.
	Restarted   uint64 // Those among them that took the place of one that failed.
	Passivated  uint64 // Instances that stopped because they were idle, or asked for it.
	Failed      uint64 // Instances that failed at a message or a timer.
	StartFailed uint64 // Instances that could not be started.
}

// Tally adds up what cells have counted, and how they are.
type Tally struct {
	Counts

	Hosted   int // Cells that host.
	Entities int // Entities with a record.
	Stuck    int // Those that do not return.
	Window   int // Messages of this node that are not acknowledged.
	Transit  int // Messages of others that wait for a home, or for one before them.
	Held     int // Entities elsewhere that take nothing from this node at present.
	// Mailboxes are the messages that wait for entities, and Deepest those that wait
	// for one, as the last whole round of [Cell.Sweep] found them.
	Mailboxes, Deepest int
}

// Tally adds this cell to t.
func (c *Cell) Tally(t *Tally) {
	t.add(&c.counts)
	if c.state != hostNone {
		t.Hosted++
	}
	t.Entities += len(c.entities)
	t.Stuck += c.stuck
	t.Window += c.window.n
	t.Transit += c.transit.n
	t.Held += len(c.holds)
	t.Mailboxes += c.depth.sum
	t.Deepest = max(t.Deepest, c.depth.most)
}

func (c *Counts) add(o *Counts) {
	c.Sent += o.Sent
	c.Received += o.Received
	c.Handled += o.Handled
	for i := range c.Refused {
		c.Refused[i] += o.Refused[i]
	}
	c.Started += o.Started
	c.Restarted += o.Restarted
	c.Passivated += o.Passivated
	c.Failed += o.Failed
	c.StartFailed += o.StartFailed
}

// depth is how many messages wait in mailboxes.
type depth struct{ sum, most int }

func (d *depth) note(n int) {
	d.sum += n
	d.most = max(d.most, n)
}

// refused counts a refusal, by a code that this version knows.
func (c *Cell) refused(code Code) { c.counts.Refused[min(int(code), Codes-1)]++ }

// Examine is the input of [Control] that asks for an [Examined]. It changes nothing.
type Examine struct {
	// ID is given back in the answer.
	ID uint64
}

// Examined is published to answer an [Examine]: what only the node knows that
// coordinates.
type Examined struct {
	ID uint64
	// Kinds are those whose coordinator runs here, sorted by name.
	Kinds []Coordinated
	// Known says of all kinds of this node who coordinates them, sorted by name.
	Known []Coordinator
}

// Coordinator is who coordinates a kind, as far as a node knows.
type Coordinator struct {
	Kind string
	// Node is none when nobody can at present.
	Node gossip.NodeID
	// Term is that under which it coordinates, zero when this node has not heard from
	// it yet: then Node is who should.
	Term Term
}

// Coordinated is how the shards of a kind are.
type Coordinated struct {
	Kind string
	// Open shards have no home, Serving ones are at rest in theirs, Moving ones are on
	// the way into one, or out of it.
	Open, Serving, Moving int
}

// coordinator says who coordinates the kind.
func (k *perKind) coordinator() Coordinator {
	known := Coordinator{Kind: k.name, Node: k.coordinatorNode()}
	switch {
	case k.coord != nil:
		known.Node, known.Term = k.control.cfg.Self, k.coord.term
	case known.Node == k.asker:
		known.Term = k.promise
	}
	return known
}

// examine answers an [Examine].
func (c *Control) examine(in Examine) {
	answer := Examined{ID: in.ID}
	for _, k := range c.kinds {
		answer.Known = append(answer.Known, k.coordinator())
		if k.coord == nil {
			continue
		}
		i := c.Inspect(k.name)
		answer.Kinds = append(answer.Kinds, Coordinated{Kind: k.name, Open: i.Open, Serving: i.Serving, Moving: i.Moving})
	}
	c.out.Publish(answer)
}
