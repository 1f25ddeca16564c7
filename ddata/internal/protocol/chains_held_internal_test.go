// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The chains in which a bucket is held back when it has lost its homes, and moves on when
// they are back: at which moments of a change that happens, the searches through them, and
// the defects of the rules that those find. Whether the homes are lost is left open: every
// order of events has to keep what was written.

// heldChain is a way to hold a bucket back while the set goes from one to the next, and to
// have it move on while the set goes to a last one.
type heldChain func(p placement, from, to, last Set) []Register

// heldChains returns the chains of some nodes that are made in one way, and end with one of
// their first sets.
func heldChains(nodes, copies int, of heldChain) [][]Register {
	var all [][]Register
	for from := range group8(1 << nodes) {
		for to := range group8(1 << nodes) {
			for last := range group8(1 << nodes) {
				if from != 0 && to != 0 && from != to && (last == from || last == to) {
					all = append(all, of(placement{copies}, setOf(from), setOf(to), setOf(last)))
				}
			}
		}
	}
	return all
}

// oneHeldChain returns one of these chains.
func oneHeldChain(copies int, of heldChain, from, to, last group8) [][]Register {
	return [][]Register{of(placement{copies}, setOf(from), setOf(to), setOf(last))}
}

// begun is the first register of a chain.
func begun(from Set) Register {
	return Register{Lineage: Lineage{1, 1}, Gen: 1, Phase: PhaseStable, Current: from}
}

// keeping is the record of the first of the buckets, which is held back with its homes in a set
// and, after a change that was not sealed, those in the set before.
func keeping(p placement, of, old Set, buckets int) (all []Held) {
	for bucket := range buckets {
		all = putHeld(all, bucket, Held{Homes: p.homes(bucket, of), Old: p.homes(bucket, old)})
	}
	return all
}

// movesOn adds the change in which buckets move on from their homes in a set.
func movesOn(so []Register, p placement, of, last Set, buckets int) []Register {
	joint := so[len(so)-1].joint(last)
	joint.Held = keeping(p, of, nil, buckets)
	for i := range joint.Held {
		joint.Held[i].Moves = true
	}
	return append(so, joint, joint.ended())
}

// heldAtOnce holds the first bucket back when the change begins.
func heldAtOnce(p placement, from, to, last Set) []Register {
	first := begun(from)
	joint := first.joint(to)
	joint.Held = keeping(p, from, nil, 1)
	return movesOn([]Register{first, joint, joint.ended()}, p, from, last, 1)
}

// heldInBetween holds the first bucket back while replicas catch up.
func heldInBetween(p placement, from, to, last Set) []Register {
	first := begun(from)
	joint := first.joint(to)
	again := joint.again(keeping(p, from, nil, 1))
	return movesOn([]Register{first, joint, again, again.ended()}, p, from, last, 1)
}

// heldAtTheEnd holds all buckets back when the change has ended and is not sealed.
func heldAtTheEnd(p placement, from, to, last Set) []Register {
	first := begun(from)
	joint := first.joint(to)
	ended := joint.ended()
	again := ended.again(keeping(p, to, from, bucketsInChains))
	return movesOn([]Register{first, joint, ended, again}, p, to, last, bucketsInChains)
}

// heldTwice holds the first bucket back again while it moves on.
func heldTwice(p placement, from, to, last Set) []Register {
	so := heldAtOnce(p, from, to, last)
	again := so[len(so)-1].again(keeping(p, last, from, 1))
	return movesOn(append(so, again), p, last, to, 1)
}

// heldSearches are the searches through all chains with a bucket that is held back.
func heldSearches() []search {
	return []search{
		{name: "held at once", nodes: 3, chains: heldChains(3, 2, heldAtOnce), copies: 2, buckets: 2, expected: 84},
		{name: "held in between", nodes: 3, chains: heldChains(3, 2, heldInBetween), copies: 2, expected: 84},
		{name: "held at the end", nodes: 3, chains: heldChains(3, 2, heldAtTheEnd), copies: 2, expected: 84},
	}
}

// smallHeldSearches are those that are fast enough to look for defects with.
func smallHeldSearches() []search {
	return []search{
		{name: "one held at once", nodes: 3, chains: oneHeldChain(2, heldAtOnce, 0b011, 0b110, 0b110), copies: 2, buckets: 2, expected: 1},
		{name: "one held at the end", nodes: 3, chains: oneHeldChain(2, heldAtTheEnd, 0b011, 0b110, 0b110), copies: 2, buckets: 2, expected: 1},
		{name: "one held at the end, step by step", nodes: 3, chains: oneHeldChain(2, heldAtTheEnd, 0b011, 0b110, 0b101), copies: 2, steps: true, expected: 1},
		{name: "one held at the end, after a read", nodes: 3, chains: oneHeldChain(2, heldAtTheEnd, 0b011, 0b110, 0b101), copies: 2, unsure: true, expected: 1},
		{name: "one held twice", nodes: 3, chains: oneHeldChain(2, heldTwice, 0b011, 0b110, 0b101), copies: 2, expected: 1},
		{name: "one of three copies held at once", nodes: 4, chains: oneHeldChain(3, heldAtOnce, 0b0111, 0b1110, 0b1110), copies: 3, expected: 1},
	}
}

// Each of these defects of the rules for buckets that are held back loses a write in some
// order of events.
func TestOrdersOfEventsFindDefectsOfHeldBuckets(t *testing.T) {
	for _, d := range heldDefects() {
		t.Run(d.name, func(t *testing.T) {
			r := machineRules()
			d.put(&r)
			s := smallHeldSearches()[d.search]
			_, losing, first := s.run(r)
			t.Logf("%d of %d chains lose: %s", losing, len(s.chains), first)
			require.NotZero(t, losing, "no order of events finds the defect")
		})
	}
}

// askingBy returns rules by which others count for a bucket that is held back.
func askingBy(of func(v *view, r *Register, p placement, bucket int) view) func(*rules) {
	return func(r *rules) {
		r.asked = func(v *view, r *Register, p placement, bucket int) view {
			if v.held {
				return of(v, r, p, bucket)
			}
			return *v
		}
	}
}

func heldDefects() []defect {
	return []defect{
		{name: "new homes count although they have not caught up", put: askingBy(func(_ *view, r *Register, p placement, bucket int) view {
			return view{current: p.homes(bucket, r.Current), next: p.homes(bucket, r.Next), old: p.homes(bucket, r.Old)}
		})},
		{name: "a bucket moves on with what one of its homes holds", search: 5, put: func(r *rules) {
			r.enough = func(v *views, self ReplicaID, taken, whole func(ReplicaID) bool) bool {
				return v.enough(self, taken, whole) || v.bucket(0).current.count(taken) > 0
			}
		}},
		{name: "a bucket that moves on is sealed with the others", put: func(r *rules) {
			r.sealed = func(r *Register, _ *views, knows func(ReplicaID) bool) bool {
				return r.Phase != PhaseEnded || r.Old.Wins(knows)
			}
		}},
		{name: "a bucket whose end is not sealed keeps its new homes alone", search: 1, put: askingBy(func(v *view, _ *Register, _ placement, _ int) view {
			return view{current: v.current, held: true}
		})},
		{name: "a bucket whose end is not sealed goes back to its former homes", search: 1, put: askingBy(func(v *view, _ *Register, _ placement, _ int) view {
			if len(v.old) > 0 {
				return view{current: v.old, held: true}
			}
			return *v
		})},
		{name: "former homes count no more before they know", search: 1, put: func(r *rules) {
			r.freed = func(*view, func(ReplicaID) bool) bool { return true }
		}},
	}
}
