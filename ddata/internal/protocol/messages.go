// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// The messages between replicas, by the part that sends them: the envelope around each;
// those that decide a register; deltas and whole entries; reads; the comparison of two
// tables; sweeps.

// Service is the number under which the messages travel.
const Service = component.ServiceData

// ComponentName is the name of the component in logs and metrics.
const ComponentName = "ddata"

// Envelope is around every message. It says which generation of the group's register the sender knows. A receiver that
// knows an earlier one adopts it, and never again answers in the earlier one.
type Envelope struct {
	Group   uint8     // The index of the group, see [Config].
	From    ReplicaID // The replica of the sender.
	Lineage Lineage   // Zero while the sender knows no register.
	Gen     uint64
	Sealed  bool // The sender knows that the end of this generation's change is sealed.
	Caught  bool // The sender has caught up in this generation, or was never behind.

	// The following are for durable groups. Loaded is the number of the last batch that was in the sender's store when
	// its node started, Written that of the last one on which the message may depend. Agrees says that the sender
	// remembers no batch of the receiver's store that is missing there. Apart says that the sender's replica does not
	// count for now, Older that it never will, since its store was found to be older than others remember.
	Loaded, Written uint64
	Agrees, Apart   bool
	Older           bool

	// Unsure says that the sender's replica is apart because it may have lost, in a crash, what it has acknowledged;
	// Restarts is the greatest number of such starts that the sender knows of. A receiver that knows a greater number
	// does not count what the message acknowledges.
	Unsure   bool
	Restarts uint64

	// Suspended says that the sender's node may not host: what it answers completes no majority.
	Suspended bool

	// Register is the whole register, for a receiver that may not know it.
	Register *Register
	Body     any
}

// Hello is sent for the sake of its envelope. With Ask, the receiver answers with one of its own. Taken is how many
// answers the sender has taken in while it catches up, 0 for not said: it grows as long as the sender makes progress.
type Hello struct {
	Ask   bool
	Taken uint64
}

// Ballot numbers the attempts to decide one generation of a register.
type Ballot struct {
	Round uint32
	By    ReplicaID
}

// Less reports whether b is beaten by o.
func (b Ballot) Less(o Ballot) bool { return b.Round < o.Round || b.Round == o.Round && b.By < o.By }

// Prepare asks for the promise to accept nothing below a ballot (Lamport 2001, "Paxos
// Made Simple", §2.2). Slot is the generation that is being decided.
type Prepare struct {
	Slot   uint64
	Ballot Ballot
}

// Promise answers Prepare. Refused names the ballot to beat instead.
type Promise struct {
	Slot    uint64
	Ballot  Ballot
	Refused bool
	// Accepted is the ballot of Value, which the replica has accepted, zero for none.
	Accepted Ballot
	Value    *Register
}

// Accept asks to accept a value.
type Accept struct {
	Slot   uint64
	Ballot Ballot
	Value  *Register
}

// Accepted answers Accept. Refused names the ballot to beat instead.
type Accepted struct {
	Slot    uint64
	Ballot  Ballot
	Refused bool
}

// Deltas carries what an origin has changed, in the order of its changes.
type Deltas struct {
	Seq     uint64
	Stamp   uint64 // The generation in which the changes were made.
	Changes []table.Change
}

// DeltasTaken answers Deltas.
type DeltasTaken struct {
	Seq uint64
	// Stale says that not everything was taken: a sweep has happened after the stamp, or the receiver is not a home of
	// every key.
	Stale bool
	// Gaps are the keys of which an earlier change is missing: the whole entry is needed.
	Gaps []string
	// Deleted are the keys that are deleted at the receiver, so that their changes have no effect.
	Deleted []string
	// Refusals are the changes that the receiver could not take.
	Refusals []Refusal
}

// Refusal says why a replica did not take what was sent for a key.
type Refusal struct {
	Key    string
	Reason string
}

// Put carries whole entries. Op is the operation that waits for the answer; 0: no answer is sent.
type Put struct {
	Op      OpID
	Stamp   uint64 // The generation in which the entries were read.
	Entries []table.Entry
}

// PutTaken answers Put.
type PutTaken struct {
	Op       OpID
	Stale    bool
	Deleted  []string // The keys of live entries that are deleted at the receiver.
	Refusals []Refusal
}

// Ask asks for the entry of a key. Hash is that of the entry of the replica that asks, 0 for none.
type Ask struct {
	Op   OpID
	Key  string
	Hash uint64
}

// Answer answers Ask.
type Answer struct {
	Op   OpID
	Same bool   // The entry has the hash that was asked about: it is not sent.
	Hash uint64 // The hash that was asked about: the entry of the replica that asks may be another one by now.
	// Entry is what the replica holds, nil for nothing.
	Entry *table.Entry
	// Away says that the replica holds no data of the key's bucket.
	Away bool
}

// Compare begins a pass: the comparison of two tables. Root is the sum of the hashes of all buckets that both replicas
// hold.
type Compare struct {
	Pass PassID
	Root uint64
}

// Groups answers Compare: equal roots, or the sums over groups of buckets.
type Groups struct {
	Pass PassID
	Same bool
	Sums []uint64
}

// AskBuckets asks for the hashes of the buckets of some groups.
type AskBuckets struct {
	Pass   PassID
	Groups []uint8
}

// BucketHashes answers AskBuckets, with the hashes of all buckets of the groups in order.
type BucketHashes struct {
	Pass   PassID
	Groups []uint8
	Hashes []uint64
}

// Pull asks for what differs in some buckets.
type Pull struct {
	Pass    PassID
	Buckets []BucketSummary
}

// BucketSummary says what a replica holds of a bucket.
type BucketSummary struct {
	Bucket uint16
	Keys   []KeyHash // Sorted by key.
}

// KeyHash names an entry by a hash of its key, and its state by another.
type KeyHash struct{ Key, Entry uint64 }

// PullReply answers Pull with as many entries as fit. Done are the buckets of which every entry is in this reply or an
// earlier one; the others are pulled again.
type PullReply struct {
	Pass    PassID
	Stamp   uint64
	Done    []uint16
	Entries []table.Entry
	// Missing are the entries, by the hash of the key, that the answering replica lacks, in
	// buckets that are done.
	Missing []MissingEntry
}

// MissingEntry names an entry that a replica lacks.
type MissingEntry struct {
	Bucket uint16
	Key    uint64
}

// Sweep asks each replica of Current which tombstones it holds, and which updates of some origins.
type Sweep struct {
	Gen     uint64
	UpTo    uint64 // Tombstones of a later stamp stay.
	Retired []crdt.Origin
}

// SweepReply answers Sweep.
type SweepReply struct {
	Gen     uint64
	Tombs   uint64 // The hash of the tombstones, which are marked from now on.
	Origins uint64 // The hash of what the replica holds of the origins.
	Veto    bool   // One of the origins is alive, as far as the replica knows: it must not be retired.

	// Where replicas hold different buckets, the hashes are told by bucket too, for those that have any. Marked is how
	// many tombstones are marked, Newer says whether there are others, and Gone are the origins of nodes that are gone
	// of which the replica still holds updates.
	Buckets []table.BucketSum
	Marked  uint64
	Newer   bool
	Gone    []crdt.Origin
}

// OpID numbers the operations of one node.
type OpID uint64

// PassID numbers the passes of one node.
type PassID uint64

var _ machine.Service = Service
