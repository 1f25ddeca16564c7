// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/quorate/quorate/gossip"

// ExportRequest asks the node that hosts the first shard of the present layout for the ids of remembered entities that
// are still in the sets of former layouts. The answer is an [ExportReply]; without an answer the request is repeated.
type ExportRequest struct {
	Layout uint16    // The number of the present layout, as the asking node knows.
	Number uint64    // Numbers the requests of a node.
	Shards []ShardID // The shards of the layout that the node hosts and whose entities may begin, in ascending order.
	Gone   []string  // Ids that are to be removed from former sets: they are in their present set, or to be forgotten.
}

// ExportReply answers [ExportRequest]. One that comes twice, or late, does no harm.
type ExportReply struct {
	Layout uint16
	Number uint64
	Gone   []string // Those ids in Gone of the request that no former set has any more.
	IDs    []string // Ids of the shards in the request, which are to be remembered there.
	Over   bool     // All former sets are empty.
}

// RememberingInput is what the control machine hands to the remembering machine of a region that remembers its
// entities: [Asked] or [ExportReply].
type RememberingInput interface{ rememberingInput() }

// Asked is an [ExportRequest] of another node, or of this one.
type Asked struct {
	From    gossip.NodeID
	Request ExportRequest
}

func (Asked) rememberingInput()       {}
func (ExportReply) rememberingInput() {}
