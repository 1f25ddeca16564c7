// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"time"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What nodes say to each other: a Question to each node that runs sharding, and its Answer.

// Sort is what a question is about.
type Sort uint8

// The sorts. They are part of the wire.
const (
	SortShards   Sort = iota + 1 // What a node hosts of a kind.
	SortEntities                 // Which entities of a kind live there, a page of them.
	SortEntity                   // What one entity is at.
	SortTell                     // Tell the entities of some shards a message.

	sorts = SortTell
)

// Question asks a node.
type Question struct {
	ID    uint64 // Unique for the process that asks.
	Sort  Sort
	Kind  string
	Limit time.Duration // How long the asker waits, from when the question comes.

	After Cursor // Of SortEntities: what follows this is asked for. Of SortEntity: the entity.
	Most  uint32 // Of SortEntities: how many, at most.

	// Of SortTell: the shards and under which epochs the node hosts them, the message, and how many entities may be told
	// in a second.
	Shards  []Place
	Payload []byte
	Rate    uint32
}

// Place is a shard at one home.
type Place struct {
	Shard protocol.ShardID
	Epoch protocol.Epoch
}

// Cursor is a place in the order of all entities of a kind: by shard, and in each by id.
type Cursor struct {
	Shard protocol.ShardID
	ID    string
}

// Less reports whether c is before another place.
func (c Cursor) Less(o Cursor) bool {
	return c.Shard < o.Shard || c.Shard == o.Shard && c.ID < o.ID
}

// Fault says why an answer says nothing.
type Fault uint8

// The faults. They are part of the wire.
const (
	FaultNone   Fault = iota
	FaultNoKind       // The node does not run the kind.
	FaultBusy         // The node serves as many questions as it may.
	FaultOther        // Detail says what.

	faults
)

// Answer answers a question.
type Answer struct {
	ID     uint64
	Fault  Fault
	Detail string

	Standing, Drained, Proxy bool // Of the node.

	Shards   []Shard  // Of SortShards, by number.
	Entities []Entity // Of SortEntities, in the order of cursors.
	More     bool     // There are entities behind the last one.
	Lines    []string // Of SortEntity: what the node says.
	Told     []Told   // Of SortTell: one for each shard that was asked for.
}

// Shard is what a node says of a shard that it hosts.
type Shard struct {
	Shard    protocol.ShardID
	Epoch    protocol.Epoch
	Stopping bool
	Entities uint32
	Stuck    uint32
	Waits    string // For what it waits before its entities may start; empty: for nothing.
}

// Entity is what a node says of an entity.
type Entity struct {
	At      Cursor
	State   string
	Since   time.Time
	Waiting uint32
	Stuck   bool
}

// Told says what became of a shard whose entities were to be told.
type Told struct {
	Shard protocol.ShardID
	// Away says that the shard is not hosted under that epoch, and that nobody was told.
	Away bool
	// Cut says that the shard went away, or the limit was over, before all were told.
	Cut bool
	// Reached counts those that were told, Full those whose mailboxes had no room.
	Reached, Full uint32
}

// Bounds of messages.
const (
	// MostEntities is the largest page of entities.
	MostEntities = 1000
	// PageBytes bounds the ids of a page.
	PageBytes = 256 << 10
	// LinesMax bounds what is said of an entity.
	LinesMax = 32
	// LineBytes bounds a line, and every other text.
	LineBytes = 1024
	// PayloadMax bounds the message that is told.
	PayloadMax = 3 << 20
	// LimitMax is the longest time that an asker waits.
	LimitMax = time.Minute
)
