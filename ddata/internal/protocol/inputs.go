// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
)

// What a node tells its machine, and what the machine wants to have done.

// LevelName is how many replicas an operation waits for.
type LevelName uint8

// The strengths, from the weakest.
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

// enough returns how many of a set of a size the level needs. It is not meant for Count.
func (l Level) enough(size int) int {
	if l.Name == All {
		return size
	}
	return min(size, max(size/2+1+l.Extra, l.MinCap))
}

// plain reports whether a level is a majority without anything added.
func (l Level) plain() bool { return l.Name == Majority && l.Extra == 0 && l.MinCap == 0 }

// Write is the command to have a local change confirmed, as the table has returned it.
type Write struct {
	Op     OpID
	Group  uint8
	Change table.Change
	// Stamp and Turn are those of the [Route] by which the change was made: the replica may have dropped it since.
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
	// Own says that the answer of the home is needed that took this node's last write of the key, as long as that
	// home can be reached.
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

// Cancel is the command to end an operation before its time: [Done] says how far it came.
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
	// Unconfirmed: the time was over. What was written stays written where it is.
	Unconfirmed
	// NoQuorum: no winning part of the replicas is left.
	NoQuorum
	// Lost: nothing was made, since the replica does not hold the key any more, and nothing is stored anywhere; the
	// operation has to begin again.
	Lost
	// Refused: a replica that the level needs has refused.
	Refused
	// WasDeleted: the key is deleted at a replica that the operation has asked.
	WasDeleted
	// Conflict: the entry has changed since it was borrowed; the update has to be made
	// again.
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

// DroppedAll is the effect that tells that the replica has forgotten everything that it held. No
// Notify names the keys: of those that do not come back nobody would learn otherwise.
type DroppedAll struct {
	Group uint8
	N     int // How many keys that were, tombstones among them.
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
	// Wipe forgets all entries that were written before; with Aside a copy is kept that
	// nothing reads.
	Wipe, Aside bool
}

// Meta is what a durable replica remembers beside its entries. It is immutable.
type Meta struct {
	Register *Register // Nil for none.
	Caught   bool
	// Promised and Accepted are about the generation after that of Register.
	Promised, Accepted Ballot
	Value              *Register
	// Confirmed names the sweep for which tombstones are marked.
	Confirmed SweepMark
	// Written is the number of the batch with which this Meta was written. A batch on which
	// no message depends has the number of the batch before it.
	Written uint64
	// Older is the replica whose store was found to be older than others remember.
	Older ReplicaID
	// StoreVersion is what other replicas have shown of their stores, sorted by id.
	Shown []StoreVersion
	// Behind says that more may have been acknowledged than is in the store, unless the node
	// ends in order. Restarts is the greatest number of unclean starts that was known.
	Behind   bool
	Restarts uint64
}

// SweepMark says that a replica has marked the tombstones of generations up to UpTo in a
// generation, and the hash of these. Late are the keys of tombstones that came afterwards.
type SweepMark struct {
	Gen, UpTo, Tombs uint64
	Late             []string
}
