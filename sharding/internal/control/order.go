// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The order of an operator that a shard move to a node: it goes to the coordinator the same way as a
// question about the shard (explain.go), where the coordinator obeys it by order.

// Move is the command to have a shard move to a node. [MoveAnswered] with the same ID answers it,
// always and once, after explainTimeout at the latest.
type Move struct {
	Kind  string
	Shard protocol.ShardID
	To    gossip.NodeID
	ID    uint64
}

// MoveShard has the coordinator move a shard. A MoveShard is not repeated.
type MoveShard Move

// MoveAnswered answers [MoveShard]: the move has begun, or why it has not. The coordinator sends it
// as a message to the node that asked, which publishes it.
type MoveAnswered struct {
	Kind    string
	Shard   protocol.ShardID
	ID      uint64
	Refusal string // Empty: the move has begun, and ends as any other.
}

// KindName returns the name of the kind.
func (m MoveShard) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m MoveAnswered) KindName() string { return m.Kind }

// Reshard is the command to change the number of shards of a kind. [ReshardAnswered] with the same ID
// answers it as [MoveAnswered] answers a [Move].
type Reshard struct {
	Kind   string
	Shards uint32
	ID     uint64
}

// ReshardKind has the coordinator change the number of shards. A ReshardKind is not repeated.
type ReshardKind Reshard

// ReshardAnswered answers [ReshardKind]: the change has begun, or why it has not.
type ReshardAnswered struct {
	Kind    string
	ID      uint64
	Refusal string // Empty: the change has begun, and comes to its end whatever happens.
}

// KindName returns the name of the kind.
func (m ReshardKind) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m ReshardAnswered) KindName() string { return m.Kind }

// byOrder is why a shard moves that was told to.
const byOrder = "an operator has asked for it"
