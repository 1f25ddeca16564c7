// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/quorate/quorate/sharding/internal/protocol"

// What goes in and out of Control inside a node: commands from the runtime, effects for cells,
// and the events that are published; then what Control tells a cell, CellInput, and what a
// cell tells Control, CellEvent.

// ComponentName is the name of [Control] among the components of a node, and in
// what it tells membership about its work.
const ComponentName = "sharding"

// AddKind is the command to run a kind on this node. A second one for the same
// kind is ignored.
type AddKind struct{ Kind KindConfig }

// Drain is the command that this node host nothing, or that it host again. A drained node stays a
// member, and goes on to send messages and to coordinate. Coordinators give it no shard, and
// move its shards away as they do those of a node that leaves; both only while there is a node that
// can host and is not drained. [NodeDrained] follows whenever a drained node hosts nothing any more.
type Drain struct {
	On bool
	ID uint64 // The number of the command, for NodeDrained.
}

// NodeDrained is published when this node is drained and hosts nothing. ID is that of the last command.
type NodeDrained struct{ ID uint64 }

// ToShard is an effect: apply Input to the cell of the shard.
// Effects of one shard keep their order.
type ToShard struct {
	Kind  string
	Shard protocol.ShardID
	Input protocol.CellInput
}

// ToShards is an effect: apply Input to every cell of the kind; of every kind if
// Kind is empty.
type ToShards struct {
	Kind  string
	Input protocol.CellInput
}

// FromShard is the input by which a cell speaks to [Control].
type FromShard struct {
	Kind  string
	Shard protocol.ShardID
	Event protocol.CellEvent
}

// HomesChanged is published by the coordinator's node when homes of shards have changed,
// for people and metrics.
type HomesChanged struct {
	Kind  string
	Term  protocol.Term
	Homes []Home
}

// KindRefused is published when a coordinator has refused this node's region.
type KindRefused struct{ Refusal SettingsRefused }

// KindAccepted is published when a coordinator has accepted this node's region for the
// first time, and when a coordinator accepts the region after a refusal.
type KindAccepted struct {
	Kind string
	// Again says that the region had been refused.
	Again bool
}

// CoordinatorStarted is published when this node becomes the coordinator of a
// kind, and CoordinatorStopped when it ceases to be.
type CoordinatorStarted struct {
	Kind string
	Term protocol.Term
}

// CoordinatorStopped is the counterpart of [CoordinatorStarted].
type CoordinatorStopped struct {
	Kind string
	Term protocol.Term
}

// MoveEnded is published by the coordinator's node when a move has ended, for
// people and metrics.
type MoveEnded struct {
	Kind  string
	Moved Moved
}

// Violation is published when a state was seen that the protocol excludes, such
// as two hosts of one shard. A counter of these must stay at 0.
type Violation struct {
	Kind   string
	Shard  protocol.ShardID
	Detail string
}
