// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// What identifies a cluster and its lineage comes first, then the memory of a voter, then the
// voters of a cluster, and which sets of them win.

// ClusterID identifies a cluster, and distinguishes it from its own successor after a
// full restart. The zero ClusterID is none.
type ClusterID struct {
	Born  int64  // Unix milliseconds; grows with each full restart.
	Nonce uint64 // Random.

	// Origin is the nonce of the first cluster of this one's lineage; zero: this is the first.
	// It follows from the nonce, and tells no clusters apart.
	Origin uint64
}

// Lineage is equal in a cluster that was founded upon a list of seed nodes and in all that
// were founded upon what its voters remember, one after the other. It is zero for none.
func (c ClusterID) Lineage() uint64 { return cmp.Or(c.Origin, c.Nonce) }

// IsZero reports whether c is none.
func (c ClusterID) IsZero() bool { return c == ClusterID{} }

// String returns "none", or the birth and the nonce: "1700000000000-9f3e".
func (c ClusterID) String() string {
	if c.IsZero() {
		return "none"
	}
	return fmt.Sprintf("%d-%x", c.Born, c.Nonce)
}

// Compare orders cluster ids by Born, then by Nonce.
func (c ClusterID) Compare(o ClusterID) int {
	return cmp.Or(cmp.Compare(c.Born, o.Born), cmp.Compare(c.Nonce, o.Nonce))
}

// DataID identifies the memory in which a node keeps its record of the voters: the
// content of its data directory, or the process of a node without one. It is drawn at
// random once. A node that comes back with the same DataID remembers its record; a
// node that lost its disk comes back with another DataID. Zero is none.
type DataID uint64

// Voters says which members vote. Only the leader changes it, under convergence. Gen
// and By together identify one value of Voters: two leaders that do not know of each
// other may give the same generation, but never as the same node.
type Voters struct {
	Gen      uint64   // Grows with each change and each removal; 0: there are no voters yet.
	By       UID      // The uid of the leader that made the change; 0 if Gen is 0.
	Voters   []NodeID // Sorted. May have members that were removed since.
	Previous []NodeID // The voters of the generation before; empty if they are the same.

	// Data are the data ids of Voters, and PreviousData those of Previous, in the same
	// order; nil if none is known. The zero DataID stands for a seed node that was
	// listed when the cluster was founded and has not voted; its uid is [UIDUnknown].
	Data, PreviousData []DataID

	Unknown string // The fields of a later release, see [Unknown]: they belong to this value.
}

// DataOf returns the data id of a voter, zero if it is not known.
func (c Voters) DataOf(voter NodeID) DataID {
	for _, set := range c.sets() {
		if i, ok := slices.BinarySearchFunc(set.voters, voter, NodeID.Compare); ok && i < len(set.data) {
			return set.data[i]
		}
	}
	return 0
}

// voterSet is a set of voters with their data ids, in the same order.
type voterSet struct {
	voters []NodeID
	data   []DataID
}

func (c *Voters) sets() [2]voterSet {
	return [2]voterSet{{c.Voters, c.Data}, {c.Previous, c.PreviousData}}
}

// Generation identifies one value of Voters in the life of a cluster.
type Generation struct {
	Gen uint64
	By  UID
}

// Compare orders generations by Gen, then by By.
func (g Generation) Compare(o Generation) int {
	return cmp.Or(cmp.Compare(g.Gen, o.Gen), cmp.Compare(g.By, o.By))
}

// Generation returns the name of c.
func (c Voters) Generation() Generation { return Generation{Gen: c.Gen, By: c.By} }

// Base returns the voter sets in each of which a side must win. While the
// last change of the Config is not known to have converged these are the old
// and the new voters, because other nodes may still count by the old ones.
func (c Voters) Base(converged bool) Base {
	if converged || len(c.Previous) == 0 {
		return Base{c.Voters}
	}
	return Base{c.Voters, c.Previous}
}

func (c *Voters) generation() Generation { return c.Generation() }

func (c *Voters) compareContent(o *Voters) int {
	return cmp.Or(
		slices.CompareFunc(c.Voters, o.Voters, NodeID.Compare),
		slices.CompareFunc(c.Previous, o.Previous, NodeID.Compare),
		slices.Compare(c.Data, o.Data),
		slices.Compare(c.PreviousData, o.PreviousData),
		strings.Compare(c.Unknown, o.Unknown),
	)
}

func sameVoters(a, b *Voters) bool {
	return a.Generation() == b.Generation() && a.compareContent(b) == 0
}

// Wins reports whether the voters for which in returns true win: more than half of
// all, or exactly half with the lowest node id among them. No two disjoint sets win,
// and no set wins among no voters. The voters must be without doubles.
func Wins(voters []NodeID, in func(NodeID) bool) bool {
	if len(voters) == 0 {
		return false
	}
	count := 0
	for _, v := range voters {
		if in(v) {
			count++
		}
	}
	return 2*count > len(voters) || (2*count == len(voters) && in(slices.MinFunc(voters, NodeID.Compare)))
}

// Base are the sets of voters that count at present. A node that does not know yet
// whether the last change of voters has reached every member holds two sets.
type Base [][]NodeID

// Wins reports whether the nodes for which in returns true win in every set of the
// base that is not empty. Without such a set no nodes win.
func (b Base) Wins(in func(NodeID) bool) bool {
	won := false
	for _, voters := range b {
		if len(voters) == 0 {
			continue
		}
		if !Wins(voters, in) {
			return false
		}
		won = true
	}
	return won
}
