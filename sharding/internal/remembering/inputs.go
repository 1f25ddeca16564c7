// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembering

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What goes into a machine and comes out of it. How a machine works is in remembering.go, calls.go and starts.go.

// Config says how a machine works.
type Config struct {
	// Rate is how many entities begin in a second without a message; 0: all at once.
	Rate int
	// Calls is how many calls of the store are under way at a time, at least 1. Sets of former layouts are opened by
	// half of them at most.
	Calls int
	// Batch is how many ids one call changes at most, at least 1.
	Batch int
	// First has an entity that is new wait until the store has it: Kept and Unkept answer
	// each Remember.
	First bool
	// Timeout is how long such an entity waits, and a little longer, before Unkept says that it is
	// given up.
	Timeout time.Duration
	// RetryMin is the pause after a call has failed; it doubles up to RetryMax.
	RetryMin, RetryMax time.Duration
	// Fault says why an id cannot be one of an entity; empty: it can. It is a pure function.
	Fault func(id string) string
}

// MaxForgets bounds the ids of a shard that are to be forgotten and are not yet. Beyond it a shard does
// not take further ones: these entities come back once more, which Stats.Overflowed counts.
const MaxForgets = 1 << 16

// The inputs. Those with a shard that is not served do nothing, but that the answers of the store end a call. Besides
// these there are [protocol.Asked], a question of a machine, and [protocol.ExportReply], the answer to one of this
// machine.
type (
	// Serve says that the node hosts a shard from now on, or again: its set is read, and its
	// entities begin.
	Serve struct {
		Shard protocol.ShardID
		Epoch protocol.Epoch
	}
	// Remember says that an entity has begun, or waits to begin.
	Remember struct {
		Shard protocol.ShardID
		ID    string
	}
	// Forget says that an entity has stopped for good.
	Forget struct {
		Shard protocol.ShardID
		ID    string
	}
	// GiveUp says that an entity does not wait to begin any more. It is forgotten if nobody has had it remembered
	// before.
	GiveUp struct {
		Shard protocol.ShardID
		ID    string
	}
	// Flush says that the shard stops: nothing more begins, and Flushed follows when everything
	// is written. Further ones do no harm.
	Flush struct{ Shard protocol.ShardID }
	// End says that the node does not host the shard any more.
	End struct{ Shard protocol.ShardID }

	// Layouts says which layouts are in force, by number: one, or two while the number of shards changes. A shard
	// that is served is of one of them.
	Layouts struct{ InForce []protocol.Layout }
	// Retired says that a shard of the former one of two layouts is retired: no node serves it any more.
	Retired struct{ Shard protocol.ShardID }

	// Opened answers [Open].
	Opened struct {
		Set     Set
		Session uint64
		IDs     []string // In any order. They belong to the machine from now on.
		Err     error
		Fenced  bool // A later owner has the set.
	}
	// Changed answers [Change].
	Changed struct {
		Set     Set
		Session uint64
		Err     error
		Fenced  bool
		Full    []string // Those to be remembered for which the store has no room.
	}
	// Rate changes [Config.Rate].
	Rate struct{ Entities int }
	// Tick says that time has passed.
	Tick struct{}
)

// Open has a set claimed and read.
type Open struct {
	Set     Set
	Session uint64 // Names the call; a later one has a higher number.
	Epoch   protocol.Epoch
}

// Change has a set changed by the session that was opened last.
type Change struct {
	Set              Set
	Session          uint64
	Remember, Forget []string // No id is in both.
}

// Close says that a set is not changed any more by the session that has opened it: what the store keeps for that may
// go.
type Close struct {
	Set     Set
	Session uint64
}

// Answer sends an answer to the machine of another node, or of this one.
type Answer struct {
	To    gossip.NodeID
	Given protocol.ExportReply
}

// Entities names entities of a shard.
type Entities struct {
	Shard protocol.ShardID
	IDs   []string
	Why   string // Of Unkept: the fault of the store.
}

// Outbox has what is to be done, each list in its order. The caller empties it.
type Outbox struct {
	Close   []Close // Before Open.
	Open    []Open
	Change  []Change
	Start   []Entities         // These entities are to run, if they do not, and if Machine.Begin has nothing against it.
	Kept    []Entities         // The store has these; with [Config.First] only.
	Unkept  []Entities         // The store did not take these in time; who gives them up says GiveUp. With First only.
	Flushed []protocol.ShardID // Everything of these is written.
	// Ask is for the machine with the first shard of the present layout. Without an answer they are repeated.
	Ask    []protocol.ExportRequest
	Answer []Answer
	Over   []uint16 // Nothing is left of what was before these layouts.
}

// Reset empties the outbox.
func (o *Outbox) Reset() { *o = Outbox{} }

// Empty reports whether there is nothing to do.
func (o *Outbox) Empty() bool {
	return len(o.Close)+len(o.Open)+len(o.Change)+len(o.Start)+len(o.Kept)+len(o.Unkept)+len(o.Flushed)+len(o.Ask)+len(o.Answer)+len(o.Over) == 0
}

// Stats are the counters of a machine since it was made, and its present numbers.
type Stats struct {
	Started    uint64 // Entities that were to begin without a message.
	Remembered uint64 // Ids that the store has taken.
	Forgotten  uint64 // Ids that the store has given up.
	Calls      uint64 // Calls of the store.
	Failed     uint64 // Of these, calls that have failed.
	Fenced     uint64 // Of these, calls that were refused since a later owner has the set.
	Unkept     uint64 // Entities of which Unkept said that the store did not take them in time.
	Full       uint64 // Entities that are not remembered, since the store has no room.
	Unwritten  uint64 // Changes that were given up, since the hosting had ended before the store took them.
	Overflowed uint64 // Ids that are not forgotten, since too many waited for that.
	Foreign    uint64 // Ids in the store that mean nothing where they are, each time they were read: these do not begin.
	Taken      uint64 // Ids that were taken over from sets of former layouts.

	Shards   int  // Shards that are served.
	Unread   int  // Of these, those whose set was not read yet.
	Faulty   int  // Sets whose last call has failed: of these shards, and of former layouts.
	Taking   bool // Sets of former layouts may have ids of these shards.
	Former   int  // Sets of former layouts that this node gives away and that are not known to be empty.
	Starting int  // Entities that wait to begin.
	Writing  int  // Ids that are to be written, or are being written.
}

// Status is what is known of one shard.
type Status struct {
	Served    bool
	Read      bool            // Its set was read.
	Starting  int             // Entities that wait to begin.
	Writing   int             // Ids that are to be written, or are being written.
	Failures  int             // Calls that have failed since one succeeded last.
	Why       string          // The fault of the last of these; empty if there was none.
	Again     machine.Instant // When the store is called again after that.
	Listed    bool            // The store tells of the number of shards: ids may be written.
	Taking    bool            // Sets of former layouts may have ids of the shard.
	Former    int             // Of the first shard: sets of former numbers of shards that are not known to be empty.
	FormerWhy string          // Of the first shard: what is wrong with one of these, or with the index.
	Held      int             // Of Writing, ids that are to be forgotten when these sets do not have them any more.
}
