// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
)

// Config is what a machine is built of.
type Config struct {
	Self   gossip.NodeID
	Groups []Group // The same on all nodes, in the same order: messages name a group by its index.
	Timing Timing
	Bounds Bounds
	Rand   *rand.Rand
	// Standing says that the driver tells the machine up to when its node may host, by [component.Standing]; until
	// then it may not. Without it the node always may.
	Standing bool
}

// Group is a group of keys with one register.
type Group struct {
	Name    string
	Role    string // Only members with the role hold the group; empty: all.
	Copies  int    // How many replicas hold each key; 0: all.
	Durable bool   // The group has a store: see [WriteBatch].

	// Table holds the keys; those that were in the store are in it already.
	Table *table.Table
	// Replica is what this node's replica is called, 0 if this node does not have the role.
	Replica ReplicaID
	// Meta is what was in the store.
	Meta Meta
	// Fresh says that the store was opened for the first time: nothing can be missing in it.
	Fresh bool
	// GoOn says that a group in memory goes on by itself, with what is left, when its majorities are lost for good.
	GoOn bool
	// ExpireAfter is after which time without a change a key expires; zero: never.
	ExpireAfter time.Duration
	// WriteBehind says how much a durable group may acknowledge that is not in its store yet; zero: nothing.
	WriteBehind WriteBehindBounds
}

// speaks reports whether a node may send in the name of a replica. The id of a replica in memory is the uid of its
// node.
func (g *Group) speaks(node gossip.NodeID, id ReplicaID) bool {
	return id != 0 && (g.Durable || id == ReplicaID(node.UID))
}

// WriteBehindBounds bounds what a group may have acknowledged that is not in its store.
type WriteBehindBounds struct {
	Interval time.Duration // After which time a change is written; zero: it is written before it is acknowledged.
	Bytes    int64         // How much may wait to be written; with more, acknowledgements wait for the store.
}

// Timing are the intervals of a machine.
type Timing struct {
	Tick   time.Duration // The interval of repetitions.
	Gossip time.Duration // The interval of comparisons with one other replica.
	Spread time.Duration // The longest time that a change waits before it is sent.
	Retry  time.Duration // When an operation asks again those that have not answered.
	Gather time.Duration // For how long the leader waits for those of Next that are reachable.
	Sweep  time.Duration // The interval of sweeps.
	Expire time.Duration // The interval of looking for idle keys.
	// Patient is how long a pass, or a first ballot, may stand still; each further ballot twice as long, up to Store.
	Patient time.Duration
	Store   time.Duration // How long one write of the store may take.
}

// DefaultTiming returns the intervals that fit most clusters.
func DefaultTiming() Timing {
	return Timing{
		Tick: 100 * time.Millisecond, Gossip: time.Second, Spread: 100 * time.Millisecond, Retry: 300 * time.Millisecond,
		Gather: 10 * time.Second, Sweep: 10 * time.Second, Expire: 5 * time.Second, Patient: 3 * time.Second, Store: 30 * time.Second,
	}
}

// Bounds limit what a machine keeps and sends.
type Bounds struct {
	Operations   int // Operations that wait at a time.
	Flights      int // Batches of deltas that are kept until they are answered.
	MessageBytes int // About how much one message may carry; a single entry may be larger.
	Held         int // Messages that wait for the store.
}

// DefaultBounds returns the bounds that fit most clusters.
func DefaultBounds() Bounds {
	return Bounds{Operations: 65_536, Flights: 64, MessageBytes: 256 << 10, Held: 65_536}
}
