// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"slices"
	"sort"

	"github.com/quorate/quorate/gossip"
)

// Who gets a message, without a clock and without I/O: rotations choose, plan puts together
// what goes to one node.

// rotation is round robin over a list that changes: it remembers who was served last and chooses the next
// in order, so that nobody is served twice before all others that were there all along, and
// whoever comes or goes in between changes nothing for the rest.
type rotation[K any] struct {
	last    K
	started bool
}

// next returns the index of the next in a list that is sorted by compare and not empty.
func (r *rotation[K]) next(list []K, compare func(a, b K) int) int {
	i := 0
	if r.started {
		i = sort.Search(len(list), func(i int) bool { return compare(list[i], r.last) > 0 }) % len(list)
	}
	r.last, r.started = list[i], true
	return i
}

// turns are the rotations of the groups of a topic.
type turns map[string]*rotation[gossip.NodeID]

// choose returns the index of the node whose turn it is in a group.
func (t turns) choose(g *groupRoute) int {
	r := t[g.name]
	if r == nil {
		r = new(rotation[gossip.NodeID])
		t[g.name] = r
	}
	return r.next(g.nodes, gossip.NodeID.Compare)
}

// keep forgets the rotations of groups that are no more.
func (t turns) keep(groups []groupRoute) {
	for name := range t {
		if !slices.ContainsFunc(groups, func(g groupRoute) bool { return g.name == name }) {
			delete(t, name)
		}
	}
}

// groupRoute is a group with the nodes that have receivers in it, sorted, at least one.
type groupRoute struct {
	name  string
	nodes []gossip.NodeID
}

// target is a node that one message goes to.
type target struct {
	node   gossip.NodeID
	plain  bool     // Its subscribers that are in no group get the message.
	groups []string // One receiver of each of these groups gets it.
}

// plan returns to which nodes a message goes, each once: to those with subscribers in no
// group, and to one of each group.
func plan(plain []gossip.NodeID, groups []groupRoute, t turns) []target {
	targets := make([]target, 0, len(plain)+len(groups))
	for _, node := range plain {
		targets = append(targets, target{node: node, plain: true})
	}
	for i := range groups {
		g := &groups[i]
		node := g.nodes[t.choose(g)]
		at := slices.IndexFunc(targets, func(t target) bool { return t.node == node })
		if at < 0 {
			at = len(targets)
			targets = append(targets, target{node: node})
		}
		targets[at].groups = append(targets[at].groups, g.name)
	}
	return targets
}
