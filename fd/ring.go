// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd

import (
	"cmp"
	"slices"
)

// A ring is made of the nodes in the order of their hashes ([NewRing], [NewMutualRing]). Whom
// a node monitors is found by a walk from its place ([Ring.Receivers]), who monitors it by the
// walks of all others ([Ring.Observers]).

// HashUID is the hash of a 64-bit incarnation number for [NewRing]: its two
// halves combined by exclusive or. Random numbers stay random, so neighbours on
// the ring are rarely neighbours in address, and so rarely in rack or host.
func HashUID(uid uint64) uint32 {
	return uint32(uid ^ uid>>32)
}

// Ring decides which node monitors which. Nodes are on a ring in the order of a hash,
// and each sends its heartbeats to its successors:
//
//	a --> b --> c          k = 2, all reachable
//	^           |          a monitors b and c
//	|           v          b monitors c and d
//	f <-- e <-- d          d is monitored by b and c
//
// The walk of a node begins at its successor and takes nodes until it has k that
// are reachable. Nodes that are unreachable are taken on the way without being
// counted, as long as fewer than k have been taken in all. They have to be
// monitored further, because some node must notice when they are back; and k reachable
// nodes beyond them are taken, because otherwise k neighbours that die together would
// take their monitoring with them. With no more than k other nodes, a node takes
// them all.
//
// From this follow, for every node n of the ring:
//
//   - R1: n is taken by each of the min(k, others) nodes before it on the ring.
//   - R2: if n is reachable, it is taken by the min(k, others) reachable nodes
//     nearest before it.
//   - R3: a node takes at most 2k nodes.
//   - R4: a node that enters or leaves a ring of more than k+1 reachable nodes
//     changes what the k nodes before it take, one node each, and nothing else.
//
// In a mutual ring ([NewMutualRing]) each node walks both ways, and takes half of its k
// nodes on either side, the odd one among its successors:
//
//	a <-> b <-> c          k = 2, all reachable
//	^           ^          a monitors b and f
//	v           v          b monitors c and a
//	f <-> e <-> d          d is monitored by c and e
//
// R1, R2 and R4 hold there with the (k+1)/2 nodes before n and the k/2 after it in place of
// the k before it, R3 as it stands, and besides:
//
//   - R5: two reachable nodes with fewer than k/2 reachable ones between them, on one way
//     round, take each other.
//
// A Ring is immutable and safe for concurrent use.
type Ring[K any] struct {
	monitors int
	behind   int        // How many of them a node takes among those before it.
	points   []point[K] // Sorted, no two alike.
	hash     func(K) uint32
	compare  func(a, b K) int
}

type point[K any] struct {
	hash uint32
	node K
}

// NewRing returns the ring of the given nodes, in any order; duplicates count once.
// Each node is monitored by the given number of nodes, at least 1; a lower number
// counts as 1. Nodes with the same hash are in the order of compare, which must be
// total, and equal only for the same node. The slice is not kept.
func NewRing[K any](monitors int, nodes []K, hash func(K) uint32, compare func(a, b K) int) Ring[K] {
	return newRing(max(monitors, 1), 0, nodes, hash, compare)
}

// NewMutualRing is [NewRing] for a ring on which most nodes are monitored by those that
// they monitor, so that one exchange of messages can serve both.
func NewMutualRing[K any](monitors int, nodes []K, hash func(K) uint32, compare func(a, b K) int) Ring[K] {
	return newRing(max(monitors, 1), monitors/2, nodes, hash, compare)
}

func newRing[K any](monitors, behind int, nodes []K, hash func(K) uint32, compare func(a, b K) int) Ring[K] {
	r := Ring[K]{monitors: monitors, behind: max(behind, 0), hash: hash, compare: compare}
	r.points = make([]point[K], len(nodes))
	for i, node := range nodes {
		r.points[i] = point[K]{hash(node), node}
	}
	slices.SortFunc(r.points, r.order)
	r.points = slices.CompactFunc(r.points, func(a, b point[K]) bool { return r.order(a, b) == 0 })
	return r
}

// Len is the number of nodes on the ring.
func (r Ring[K]) Len() int { return len(r.points) }

// Nodes returns the nodes in the order of the ring.
func (r Ring[K]) Nodes() []K {
	nodes := make([]K, len(r.points))
	for i, p := range r.points {
		nodes[i] = p.node
	}
	return nodes
}

// Receivers returns the nodes to which self sends its heartbeats, in the order of the
// ring from self on; on a mutual ring the nodes before self follow, the nearest first. Self
// is not among them, and need not be on the ring. The function unreachable is called for
// each node on the way; nil means that none is unreachable.
func (r Ring[K]) Receivers(self K, unreachable func(K) bool) []K {
	start, on := r.find(self)
	others, successor := len(r.points), start
	if on {
		others--
		successor++
	}
	taken := make([]K, 0, min(others, r.monitors))
	if r.monitors >= others {
		for i := range others {
			taken = append(taken, r.at(successor+i))
		}
		return taken
	}
	if unreachable == nil {
		unreachable = func(K) bool { return false }
	}
	taken = r.walk(taken, others, r.monitors-r.behind, unreachable, func(i int) K { return r.at(successor + i) })
	return r.walk(taken, others, r.behind, unreachable, func(i int) K { return r.at(start - 1 - i) })
}

// walk adds the nodes of one walk: until so many reachable ones were met, and those that are
// unreachable among the first ones. Where the nodes are few, both walks meet the same ones.
func (r Ring[K]) walk(taken []K, others, wanted int, unreachable func(K) bool, next func(i int) K) []K {
	for i, found, met := 0, 0, 0; i < others && found < wanted; i++ {
		node := next(i)
		if unreachable(node) {
			if met >= wanted {
				continue
			}
		} else {
			found++
		}
		met++
		if !slices.ContainsFunc(taken, func(k K) bool { return r.compare(k, node) == 0 }) {
			taken = append(taken, node)
		}
	}
	return taken
}

// at returns the node at a position, counted around the ring.
func (r Ring[K]) at(i int) K { return r.points[(i+len(r.points))%len(r.points)].node }

// Observers returns the nodes that send heartbeats to subject, in the order of
// the ring from subject on, given that all know the same nodes to be unreachable.
// It is the inverse of [Ring.Receivers], and is meant for explanations and
// checks: it takes the walk of every node.
func (r Ring[K]) Observers(subject K, unreachable func(K) bool) []K {
	start, on := r.find(subject)
	if !on {
		return nil
	}
	var observers []K
	for i := 1; i < len(r.points); i++ {
		node := r.points[(start+i)%len(r.points)].node
		takes := func(k K) bool { return r.compare(k, subject) == 0 }
		if slices.ContainsFunc(r.Receivers(node, unreachable), takes) {
			observers = append(observers, node)
		}
	}
	return observers
}

func (r Ring[K]) order(a, b point[K]) int {
	if c := cmp.Compare(a.hash, b.hash); c != 0 {
		return c
	}
	return r.compare(a.node, b.node)
}

// find returns the position of a node, or the position at which it would be inserted.
func (r Ring[K]) find(node K) (int, bool) {
	return slices.BinarySearchFunc(r.points, point[K]{r.hash(node), node}, r.order)
}
