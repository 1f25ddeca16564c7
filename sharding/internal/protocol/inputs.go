// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/quorate/quorate/gossip"

// What goes in and out of Control inside a node: commands from the runtime, effects for cells,
// and the events that are published; then what Control tells a cell, CellInput, and what a
// cell tells Control, CellEvent.

// ComponentName is the name of [Control] among the components of a node, and in
// what it tells membership about its work.
const ComponentName = "sharding"

// AddKind is the command to run a kind on this node. A second one for the same
// kind is ignored.
type AddKind struct{ Kind KindConfig }

// ToShard is an effect: apply Input to the cell of the shard by [Cell.Apply].
// Effects of one shard keep their order.
type ToShard struct {
	Kind  string
	Shard ShardID
	Input CellInput
}

// ToShards is an effect: apply Input to every cell of the kind; of every kind if
// Kind is empty.
type ToShards struct {
	Kind  string
	Input CellInput
}

// FromShard is the input by which a cell speaks to [Control]; see [OpEvent].
type FromShard struct {
	Kind  string
	Shard ShardID
	Event CellEvent
}

// HomesChanged is published by the coordinator's node when homes of shards have changed,
// for people and metrics.
type HomesChanged struct {
	Kind  string
	Term  Term
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
	Term Term
}

// CoordinatorStopped is the counterpart of [CoordinatorStarted].
type CoordinatorStopped struct {
	Kind string
	Term Term
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
	Shard  ShardID
	Detail string
}

// CellInput is what [Control] tells a cell: [SetRoute], [StartHosting],
// [StopHosting], [ResumeHosting], [ReleaseHosting], [Suspend], [Unsuspend] or
// [Abandon].
type CellInput interface{ shardInput() }

// SetRoute tells a cell where its shard lives. An epoch that is not above the
// route's is ignored.
type SetRoute struct {
	Home  gossip.NodeID
	Epoch Epoch
	Base  Epoch
}

// StartHosting makes the cell the host.
type StartHosting struct {
	Epoch     Epoch
	Base      Epoch
	Positions []Position
}

// StopHosting makes the host let its mailboxes run out and stop its entities.
// The cell answers by [ShardHalted].
type StopHosting struct {
	Epoch Epoch
	// Leaving says that the shard stops because the node leaves the cluster; the entities
	// are told so.
	Leaving bool
}

// ResumeHosting takes [StopHosting] back, unless the shard has stopped.
type ResumeHosting struct{ Epoch Epoch }

// ReleaseHosting makes a host that is stopping give up the entities that do not
// stop, since the shard moves without waiting for them any longer: no answer of these
// entities leaves any more, and they begin no other message. The cell answers by
// [ShardHalted], at once. A host that is not stopping under the epoch ignores the input.
type ReleaseHosting struct{ Epoch Epoch }

// Suspend says that the node has no standing: no message begins, and no reply
// leaves, until [Unsuspend].
type Suspend struct{}

// Unsuspend takes [Suspend] back.
type Unsuspend struct{}

// Abandon says that the node must stop at once: entities are stopped, no answer of theirs
// leaves any more, and every message that waits fails.
type Abandon struct{}

func (SetRoute) shardInput()       {}
func (StartHosting) shardInput()   {}
func (StopHosting) shardInput()    {}
func (ResumeHosting) shardInput()  {}
func (ReleaseHosting) shardInput() {}
func (Suspend) shardInput()        {}
func (Unsuspend) shardInput()      {}
func (Abandon) shardInput()        {}

// CellEvent is what a cell tells [Control]: [Lookup] or [ShardHalted].
type CellEvent interface{ shardEvent() }

// Lookup says that the cell needs a home, or a newer one than it knows.
type Lookup struct {
	// Above is the epoch that the home must exceed; zero if any will do.
	Above Epoch
}

// ShardHalted says that all entities of the shard have stopped.
type ShardHalted struct {
	Epoch Epoch
	Base  Epoch
	// Positions say up to which message each stream of Base was delivered, sorted by origin.
	Positions []Position
}

func (Lookup) shardEvent()      {}
func (ShardHalted) shardEvent() {}
