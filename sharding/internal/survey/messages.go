// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"time"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The messages between nodes: a [Question] to each node that runs sharding, and its [Answer].

// QuestionType says what is asked.
type QuestionType uint8

// The types of questions. They are part of the wire.
const (
	TypeShards   QuestionType = iota + 1 // What a node hosts of a kind.
	TypeEntities                         // Which entities of a kind live there, a page of them.
	TypeEntity                           // What state one entity is in.
	TypeTell                             // Tell the entities of some shards a message.

	lastType = TypeTell
)

// Question is a question to a node.
type Question struct {
	ID    uint64 // Unique for the process that asks.
	Type  QuestionType
	Kind  string
	Limit time.Duration // How long the asking node waits, from when the question comes.

	After Cursor // Of TypeEntities: entities after this place are asked for. Of TypeEntity: the entity.
	Most  uint32 // Of TypeEntities: how many, at most.

	// Of TypeTell: the shards, with the epochs under which the node hosts them; the message; and how many entities may
	// be told in a second.
	Shards  []Place
	Payload []byte
	Rate    uint32
}

// Place is a shard at one home.
type Place struct {
	Shard protocol.ShardID
	Epoch protocol.Epoch
}

// Cursor is a place in the order of all entities of a kind, which is by shard, and in each shard by id.
type Cursor struct {
	Shard protocol.ShardID
	ID    string
}

// Less reports whether c is before o.
func (c Cursor) Less(o Cursor) bool {
	return c.Shard < o.Shard || c.Shard == o.Shard && c.ID < o.ID
}

// Fault says why an answer has nothing in it.
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

	Shards   []Shard  // Of TypeShards, by number.
	Entities []Entity // Of TypeEntities, in the order of cursors.
	More     bool     // There are entities after the last one.
	Lines    []string // Of TypeEntity: the state of the entity as text.
	Told     []Told   // Of TypeTell: one for each shard of the question.
}

// Shard is the state of a shard at the node that hosts it.
type Shard struct {
	Shard    protocol.ShardID
	Epoch    protocol.Epoch
	Stopping bool
	Entities uint32
	Stuck    uint32
	Waits    string // What the shard waits for before its entities may start; empty: nothing.
}

// Entity is the state of an entity at the node that hosts it.
type Entity struct {
	At      Cursor
	State   string
	Since   time.Time
	Waiting uint32
	Stuck   bool
}

// Told says which entities of a shard were told a message.
type Told struct {
	Shard protocol.ShardID
	// Away says that the node does not host the shard under the epoch of the question, and has told none.
	Away bool
	// Cut says that the shard moved, or the limit passed, before all were told.
	Cut bool
	// Reached counts the entities that were told, Full those whose mailboxes had no room.
	Reached, Full uint32
}

// Bounds of messages.
const (
	// MaxPageEntities is the largest page of entities.
	MaxPageEntities = 1000
	// MaxPageBytes bounds the ids of a page.
	MaxPageBytes = 256 << 10
	// MaxLines bounds the lines about an entity.
	MaxLines = 32
	// MaxLineBytes bounds a line, and every other text.
	MaxLineBytes = 1024
	// MaxPayloadBytes bounds the message that is told.
	MaxPayloadBytes = 3 << 20
	// MaxLimit is the longest limit of a question.
	MaxLimit = time.Minute
)
