// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// CountShards is the input of [Control] that asks for [ShardCounts]. It changes nothing.
type CountShards struct {
	// ID is given back in the answer.
	ID uint64
}

// ShardCounts is published to answer [CountShards].
type ShardCounts struct {
	ID uint64
	// Kinds describes the kinds whose coordinator runs here, sorted by name: only the node
	// of the coordinator knows how their shards are.
	Kinds []KindCounts
}

// CoordinatorsKnown is published when what this node knows of the coordinators of its kinds has
// changed: who wants to know need not ask a machine that may be busy.
type CoordinatorsKnown struct {
	// Kinds holds all kinds of this node, sorted by name.
	Kinds []Coordinator
}

// Coordinator names the coordinator of a kind, as far as a node knows.
type Coordinator struct {
	Kind string
	// Node coordinates the kind; it is zero when no node can at present, and Missing says why.
	Node    gossip.NodeID
	Missing string
	// Term is the term of the coordinator. It is zero when this node has not heard from
	// the coordinator yet: then Node is the one that should coordinate.
	Term protocol.Term
}

// KindCounts counts the shards of a kind by their phase.
type KindCounts struct {
	Kind string
	// Open counts shards without a home, Serving those at rest in their home, Moving those
	// on the way into a home, or out of it.
	Open, Serving, Moving int
}

// coordinator names the coordinator of the kind.
func (k *perKind) coordinator() Coordinator {
	known := Coordinator{Kind: k.name, Node: k.coordinatorNode()}
	switch {
	case k.coord != nil:
		known.Node, known.Term = k.control.cfg.Self, k.coord.term
	case known.Node.IsZero():
		known.Missing = k.missing()
	case known.Node == k.asker:
		known.Term = k.promise
	}
	return known
}

// missing says why no node can coordinate the kind, and so why no shard gets a home.
func (k *perKind) missing() string {
	switch st := k.control.state; {
	case st == nil:
		return "this node is in no cluster yet"
	case k.core == nil:
		return "the settings of the kind are not known yet"
	case k.settings.Role != "" && !protocol.AnyHasRole(st, k.settings.Role):
		return protocol.NoRole(k.settings.Role)
	default:
		return "no member that is up can coordinate the kind"
	}
}

// tellCoordinators publishes the coordinators when they have changed.
func (c *Control) tellCoordinators() {
	same := len(c.told) == len(c.kinds)
	for i, k := range c.kinds {
		if same = same && c.told[i] == k.coordinator(); !same {
			break
		}
	}
	if same {
		return
	}
	c.told = make([]Coordinator, 0, len(c.kinds))
	for _, k := range c.kinds {
		c.told = append(c.told, k.coordinator())
	}
	c.out.Publish(CoordinatorsKnown{Kinds: c.told})
}

// countShards answers [CountShards].
func (c *Control) countShards(in CountShards) {
	answer := ShardCounts{ID: in.ID}
	for _, k := range c.kinds {
		if k.coord == nil {
			continue
		}
		i := c.Inspect(k.name)
		answer.Kinds = append(answer.Kinds, KindCounts{Kind: k.name, Open: i.Open, Serving: i.Serving, Moving: i.Moving})
	}
	c.out.Publish(answer)
}
