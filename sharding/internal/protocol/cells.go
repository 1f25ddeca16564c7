// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/quorate/quorate/gossip"

// What the control machine tells a cell, [CellInput], and what a cell tells the control machine, [CellEvent].

// CellInput is what the control machine tells a cell: [SetRoute], [StartHosting],
// [StopHosting], [ResumeHosting], [ReleaseHosting], [RetireShard], [SuspendHosting], [UnsuspendHosting] or
// [AbandonHosting].
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
	// Snapshots are those of the entities, which have moved with the shard.
	Snapshots []Snapshot
}

// StopHosting makes the host process what is in its mailboxes, and then stop its entities.
// The cell answers by [ShardStopped].
type StopHosting struct {
	Epoch Epoch
	// Leaving says that the shard stops because the node leaves the cluster; the entities
	// are told so.
	Leaving bool
}

// ResumeHosting cancels [StopHosting], unless the shard has stopped.
type ResumeHosting struct{ Epoch Epoch }

// ReleaseHosting makes a host that is stopping give up the entities that have not stopped, since the shard moves
// without waiting for them any longer: these entities begin no other message, and what they answer is dropped. The cell
// answers by [ShardStopped] at once. A host that is not stopping under the epoch ignores the input.
type ReleaseHosting struct{ Epoch Epoch }

// RetireShard says that the shard is retired: no node hosts it any more, since its entities live in their shards of the
// next layout from now on. What this node has accepted for the shard, and was not delivered, goes to those shards. A
// retired cell handles no input but [AbandonHosting].
type RetireShard struct {
	// Epoch is above all epochs of homes of the shard.
	Epoch Epoch
	Base  Epoch
	// Positions say up to which message each stream of Base was delivered, sorted by origin. Unless Known is set they
	// are not known, and any message that was sent may have been delivered.
	Positions []Position
	Known     bool
	// Lost are the snapshots of entities that would have moved with the shard, and are lost.
	Lost []Snapshot
}

// SuspendHosting says that the node has no standing: no message begins to be processed, and no reply is sent, until
// [UnsuspendHosting].
type SuspendHosting struct{}

// UnsuspendHosting ends [SuspendHosting].
type UnsuspendHosting struct{}

// AbandonHosting says that the node must stop at once: entities are stopped, what they answer is dropped, and every
// message that waits fails.
type AbandonHosting struct{}

func (SetRoute) shardInput()         {}
func (StartHosting) shardInput()     {}
func (StopHosting) shardInput()      {}
func (ResumeHosting) shardInput()    {}
func (ReleaseHosting) shardInput()   {}
func (RetireShard) shardInput()      {}
func (SuspendHosting) shardInput()   {}
func (UnsuspendHosting) shardInput() {}
func (AbandonHosting) shardInput()   {}

// CellEvent is what a cell tells the control machine, [Lookup] or [ShardStopped], or the runtime, [MemoryLost].
type CellEvent interface{ shardEvent() }

// Lookup says that the cell needs a home, or a newer one than it knows.
type Lookup struct {
	// Above is the epoch that the home must exceed; zero if any will do.
	Above Epoch
}

// ShardStopped says that all entities of the shard have stopped.
type ShardStopped struct {
	Epoch Epoch
	Base  Epoch
	// Positions say up to which message each stream of Base was delivered, sorted by origin.
	Positions []Position
	// Snapshots are those of the entities, which move with the shard.
	Snapshots []Snapshot
}

func (Lookup) shardEvent()       {}
func (ShardStopped) shardEvent() {}
