// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package component

import "github.com/quorate/quorate/gossip"

// Fences is the book of those removed members of which [Fenced] was heard: they can be
// hosting nothing any more. A component has one, which all that it consists of share. It
// adds each node of a Fenced before it tells its parts of that, and forgets with each
// Changed before it passes that on.
//
// The zero value is ready for use. A Fences belongs to one goroutine.
type Fences struct{ nodes map[gossip.NodeID]struct{} }

// Add notes that a removed member can be hosting nothing any more. Doing so twice is
// doing it once.
func (f *Fences) Add(node gossip.NodeID) {
	if f.nodes == nil {
		f.nodes = make(map[gossip.NodeID]struct{})
	}
	f.nodes[node] = struct{}{}
}

// Has tells whether a node was added, and has not been forgotten.
func (f *Fences) Has(node gossip.NodeID) bool {
	_, ok := f.nodes[node]
	return ok
}

// Forget drops those whom the cluster has forgotten, which are neither members nor known
// as removed in its state: nobody asks for them any more. So no more are kept than a
// state has members and tombstones.
func (f *Fences) Forget(state *gossip.State) {
	for node := range f.nodes { //quorate:unordered each entry by itself
		if _, removed := state.Removed(node); !removed && state.Member(node) == nil {
			delete(f.nodes, node)
		}
	}
}

// Len is how many are kept.
func (f *Fences) Len() int { return len(f.nodes) }
