// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/quorate/quorate/gossip"

// Take asks the node with the first shard of the present layout for the ids of remembered entities that are still in
// the sets of former layouts. The answer is [Given]; none is no fault: it is asked again.
type Take struct {
	Layout uint16    // The number of the present layout, as the asking node knows.
	Number uint64    // Names the question at its node; a later one has a higher number.
	Shards []ShardID // Those of the layout that the node serves and whose entities may begin, in order.
	Gone   []string  // Ids that are written in their present set, or to be forgotten: no former set is to have them.
}

// Given answers [Take]. To get it a second time does no harm, nor does an old one.
type Given struct {
	Layout uint16
	Number uint64
	Gone   []string // Of the question's, those that no former set has any more.
	IDs    []string // They are of the shards in the question, and are to be remembered there.
	Over   bool     // No former set has anything any more.
}

// RememberingInput is what the control machine hands to the remembering machine of a region that remembers its
// entities: [Asked] or [Given].
type RememberingInput interface{ deskInput() }

// Asked is a [Take] of another node, or of this one.
type Asked struct {
	From gossip.NodeID
	Take Take
}

func (Asked) deskInput() {}
func (Given) deskInput() {}
