// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/quorate/quorate/gossip"

// What the control machine tells a cell, CellInput, and what a cell tells the control
// machine, CellEvent.

// CellInput is what the control machine tells a cell: [SetRoute], [StartHosting],
// [StopHosting], [ResumeHosting], [ReleaseHosting], [Retire], [Suspend], [Unsuspend] or
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
	// Snapshots is the memory of the entities that has come with the shard.
	Snapshots []Snapshot
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

// Retire says that the shard is retired: no node hosts it any more, nor will, since its entities live
// in their shards of the next layout from now on. What was delivered stays so, and what this node has
// accepted for the shard and was not delivered goes to those shards. A retired cell takes nothing
// but [Abandon].
type Retire struct {
	// Epoch is above all epochs of homes of the shard.
	Epoch Epoch
	Base  Epoch
	// Positions say up to which message each stream of Base was delivered, sorted by origin. They are
	// known if Known is set: else what has left a node may have been delivered.
	Positions []Position
	Known     bool
	// Lost is the memory of entities that would have gone with the shard, and is lost.
	Lost []Snapshot
}

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
func (Retire) shardInput()         {}
func (Suspend) shardInput()        {}
func (Unsuspend) shardInput()      {}
func (Abandon) shardInput()        {}

// CellEvent is what a cell tells the control machine: [Lookup] or [ShardHalted].
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
	// Snapshots is the memory of the entities that goes with the shard.
	Snapshots []Snapshot
}

func (Lookup) shardEvent()      {}
func (ShardHalted) shardEvent() {}
