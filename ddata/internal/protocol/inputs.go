// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
)

// The inputs that a node gives its machine, and the effects that the machine returns.

// LevelName says which replicas an operation waits for.
type LevelName uint8

// The levels, from the weakest.
const (
	// Local: this replica alone.
	Local LevelName = iota + 1
	// Count: a number of replicas, this one included.
	Count
	// Majority: more than half of each set that counts.
	Majority
	// All: every replica of each set that counts.
	All
)

// Level says how many replicas an operation waits for.
type Level struct {
	Name   LevelName
	N      int // For Count: how many.
	Extra  int // For Majority: how many more than a majority.
	MinCap int // For Majority: at least as many, as far as there are.
}

// enough returns how many replicas of a set the level needs, for Majority and All.
func (l Level) enough(size int) int {
	if l.Name == All {
		return size
	}
	return min(size, max(size/2+1+l.Extra, l.MinCap))
}

// plain reports whether a level is a majority without anything added.
func (l Level) plain() bool { return l.Name == Majority && l.Extra == 0 && l.MinCap == 0 }

// Write is the command to have a change confirmed by replicas. The change was made in this node's table, which has
// returned it.
type Write struct {
	Op     OpID
	Group  uint8
	Change table.Change
	// Stamp and Turn are the generation and the turn of the [Route] by which the change was made: the replica may have
	// dropped it since.
	Stamp uint64
	Turn  uint32
	Level Level
	Limit time.Duration // How long the operation may take.
}

// Read is the command to read a key.
type Read struct {
	Op    OpID
	Group uint8
	Key   string
	Level Level
	Limit time.Duration
	// Own says that the read has to see this node's own writes: it waits for the home that took the last of them, as
	// long as that home can be reached.
	Own bool
}

// Delete is the command to delete a key.
type Delete struct {
	Op    OpID
	Group uint8
	Key   string
	Level Level
	Limit time.Duration
}

// Cancel is the command to end an operation before its limit: [Done] says how far it came.
type Cancel struct{ Op OpID }

// SendDeltas is the command to send local changes soon, for a change that no operation waits
// for.
type SendDeltas struct{ Group uint8 }

// AcceptLoss is the command of an operator to go on with what this replica holds, although
// no winning part of the replicas is left: a new lineage begins.
type AcceptLoss struct{ Group uint8 }

// Verdict says how an operation ended.
type Verdict uint8

// The verdicts.
const (
	// Confirmed: as many replicas as the level demands have answered.
	Confirmed Verdict = iota + 1
	// Unconfirmed: the limit has passed. What was written stays written where it is.
	Unconfirmed
	// NoQuorum: no winning part of the replicas is left.
	NoQuorum
	// Lost: the replica does not hold the key any more. Nothing was stored anywhere, and the operation may be begun
	// again.
	Lost
	// Refused: a replica that the level needs has refused.
	Refused
	// WasDeleted: the key is deleted at a replica that the operation has asked.
	WasDeleted
	// Conflict: the entry has changed since it was fetched; the update has to be made again.
	Conflict
	// Overloaded: too many operations wait.
	Overloaded
	// Gone: the node ends.
	Gone
	// HomesLost: the bucket of the key is held back, since no winning part of its homes is left.
	HomesLost
)

// Done is the effect that ends an operation.
type Done struct {
	Op      OpID
	Verdict Verdict
	Entry   *table.Entry // For a read: what was read, nil for nothing.
	// Answered are the nodes whose answers count, Missing those replicas that did not
	// answer, both sorted.
	Answered []gossip.NodeID
	Missing  []ReplicaID
	Refusals []NodeRefusal
	Since    time.Duration // For NoQuorum: for how long,
	Recovery Recovery      // and what will or must happen.
	Err      error
}

// NodeRefusal is a refusal with the node that refused.
type NodeRefusal struct {
	Node   gossip.NodeID
	Reason string
}

// KeysChanged is the effect that tells of keys that have changed.
type KeysChanged struct {
	Group uint8
	Keys  []string
}

// DroppedAll is the effect that tells that the replica has dropped everything that it held. No [KeysChanged] names
// those keys before they come back from other replicas.
type DroppedAll struct {
	Group uint8
	N     int // How many keys were dropped, tombstones included.
}

// Routed is the effect that says which replicas hold which keys from now on, for callers that
// read and write the tables without the machine.
type Routed struct {
	Group uint8
	Route *Route
}

// StorePort is the port of the calls to the store of the durable groups, a [WriteBatch] with the
// name of the group as the key, or a [RenewID].
const StorePort = "store"

// WriteBatch is the request to write a batch: everything in it is written or nothing.
type WriteBatch struct {
	Group   string
	Meta    Meta
	Entries []table.Entry
	Drop    []string
	// Wipe removes all entries that were written before; with Aside a copy of them is kept, which nothing reads.
	Wipe, Aside bool
}

// Meta is what a durable replica remembers beside its entries. It is immutable.
type Meta struct {
	Register *Register // Nil for none.
	Caught   bool      // The replica had caught up in the generation of Register.
	// Promised and Accepted are about the generation after that of Register.
	Promised, Accepted Ballot
	Value              *Register
	// Confirmed names the sweep for which tombstones are marked.
	Confirmed SweepMark
	// Written is the number of the batch with which this Meta was written. A batch on which no message depends has the
	// number of the batch before it.
	Written uint64
	// Older is the replica of this store once the store was found to be older than others remember, 0 before.
	Older ReplicaID
	// Shown is how far the stores of other replicas are known to have come, sorted by id.
	Shown []StoreVersion
	// Behind says that more may have been acknowledged than is in the store, unless the node has ended in order since.
	// Restarts is the greatest number of unclean starts that was known.
	Behind   bool
	Restarts uint64
}

// SweepMark says what a replica has marked for a sweep: in generation Gen, the tombstones of generations up to UpTo,
// with the hash Tombs. Late are the keys of such tombstones that came afterwards, and are not marked.
type SweepMark struct {
	Gen, UpTo, Tombs uint64
	Late             []string
}
