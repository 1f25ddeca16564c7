// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The messages between the Controls of two nodes, in the order in which they pass: the
// coordinator asks and the regions report; regions register; the map goes out; shards are
// hosted, stopped, resumed and released; the coordinator is handed over.

// Message is one of the messages between the [Control]s of two nodes.
type Message interface {
	// KindName returns the name of the kind that the message is about.
	KindName() string
}

// Query asks a node to promise that it obeys no coordinator of a lower term,
// and to report what it hosts. A Query is repeated until it is answered.
type Query struct {
	Kind string
	Term protocol.Term
}

// Refused tells a coordinator that its term is below the sender's promise.
type Refused struct {
	Kind    string
	Promise protocol.Term
}

// NoRegion answers a [Query]: the sender promised, and hosts nothing.
type NoRegion struct {
	Kind string
	Term protocol.Term
	// Follows is as in [Registration].
	Follows bool
}

// HostState says in which state a region has a shard.
type HostState uint8

// The states of a shard at its host.
const (
	Serving  HostState = iota + 1 // The entities process messages.
	Stopping                      // The mailboxes run out.
	Halted                        // All entities have stopped.
)

// String returns the name of the state.
func (s HostState) String() string {
	switch s {
	case Serving:
		return "serving"
	case Stopping:
		return "stopping"
	case Halted:
		return "stopped"
	default:
		return "none"
	}
}

// Hosted is one shard that a region hosts or has hosted.
type Hosted struct {
	Shard protocol.ShardID
	Epoch protocol.Epoch
	// Base is the epoch at which the streams of the shard last began anew.
	Base  protocol.Epoch
	State HostState
}

// Report answers a [Query]: the sender promised, and hosts the shards in Hosted. A Report
// registers the sender's region as well.
type Report struct {
	Kind         string
	Term         protocol.Term
	Registration Registration
	// Hosted is sorted by shard.
	Hosted []Hosted
	// Layouts and Past are as in [Map]; empty while the region has heard of no change of the number of
	// shards. Retired are the shards that are retired, as the region knows.
	Layouts []protocol.Layout
	Past    []uint32
	Retired []Retirement
}

// Retirement says that a shard is retired: its entities live in those of the next layout.
type Retirement struct {
	Shard protocol.ShardID
	// Epoch is above those of all homes of the shard.
	Epoch protocol.Epoch
	// Base is the epoch at which the streams of the shard last began anew; Epoch, if they never began.
	Base protocol.Epoch
	// Positions are those of the streams of Base, sorted by origin, if Known is set. They are left out
	// once every region has heard of the retirement.
	Positions []protocol.Position
	Known     bool
}

// Registration describes a region to the coordinator.
type Registration struct {
	Settings Settings
	// Proxy says that the region hosts nothing.
	Proxy bool
	// Suspended says that nothing new should be given to the region: its node has
	// no standing, or is leaving.
	Suspended bool
	// Drained says that an operator wants the node to host nothing, see [Drain].
	Drained bool
	// Follows says that the region can follow a change of the number of shards.
	Follows bool
	// Capacity is as in [KindConfig].
	Capacity uint32
	// Age is how long the region has been there, up to [MaxAge]; 0 when the region does not say.
	// It is no part of what Number counts, as are the loads.
	Age time.Duration
	// Load is the part of the node that the kind used of late, up to [LoadFull], and
	// LoadShards the number of shards that did so, in parts of [LoadShard].
	Load, LoadShards uint32
	// Takeover says whether sets of former layouts may have ids of remembered entities, see [TakenOver]: 0 for a region
	// that remembers nothing, 1 if they may as far as the region knows, else 2 more than the number of the present layout.
	Takeover uint32
	// Scale is the latest that the region was told of how many shards are in use.
	Scale Scale
	// Number grows, from 1 on, whenever the registration differs from the last one: a
	// registration may be overtaken on its way by the next. Zero: it is not numbered.
	Number uint64
}

// MaxAge is the longest age of a region that is told, and the longest [Timings.SlowStart].
const MaxAge = time.Hour

// Register makes a region known to the coordinator, or refreshes its registration. A
// Register is repeated for as long as the region lives.
type Register struct {
	Kind         string
	Registration Registration
	// Term and Version tell which map the region holds; zero for none. The
	// coordinator sends the whole map when they are not those of the present map.
	Term    protocol.Term
	Version uint64
	// Wanted are shards of which the region looks for the home, sorted.
	Wanted []protocol.ShardID
}

// SettingsRefused answers [Register] and [Report] of a region whose settings
// differ from the coordinator's.
type SettingsRefused struct {
	Kind string
	// Setting names the setting, Coordinator and Region are its values at the coordinator
	// and at the region.
	Setting, Coordinator, Region string
}

// Home is one entry of the shard map.
type Home struct {
	Shard protocol.ShardID
	// Node hosts the shard.
	Node gossip.NodeID
	// Epoch is the epoch of the home.
	Epoch protocol.Epoch
	// Base is the epoch at which the streams of the shard last began anew.
	Base protocol.Epoch
}

// Map brings a region's copy of the shard map from version From to version To
// of the term. With From 0 it is the whole map.
type Map struct {
	Kind     string
	Term     protocol.Term
	From, To uint64
	// Homes are the entries that changed, sorted by shard.
	Homes []Home
	// Layouts are those in force, by number; empty while the number of shards was never changed, or the
	// coordinator does not know yet.
	Layouts []protocol.Layout
	// Past are numbers of shards that the kind has had since the cluster formed, and with which regions may
	// be configured.
	Past []uint32
	// Retired are the shards that were retired since From, sorted.
	Retired []Retirement
	// Settled is an epoch up to which every region knows of all retirements; zero: of none.
	Settled protocol.Epoch
}

// NeedMap asks the coordinator for the whole map: the sender's copy has a gap.
type NeedMap struct {
	Kind string
	Term protocol.Term
}

// HostShard is one shard of [Host].
type HostShard struct {
	Shard protocol.ShardID
	Epoch protocol.Epoch
	Base  protocol.Epoch
	// Positions are those of the streams of Base, sorted by origin; a stream
	// that is missing has delivered nothing.
	Positions []protocol.Position
	// Snapshots is the memory of the entities that comes from the home before.
	Snapshots []protocol.Snapshot
}

// Host tells a region to host shards. A Host is repeated until [Hosting] answers.
type Host struct {
	Kind string
	Term protocol.Term
	// Scale is under which revision the shards are hosted.
	Scale  Scale
	Shards []HostShard
}

// ShardEpoch names a shard at one home.
type ShardEpoch struct {
	Shard protocol.ShardID
	Epoch protocol.Epoch
}

// Hosting answers [Host]: the sender hosts the shards.
type Hosting struct {
	Kind   string
	Term   protocol.Term
	Shards []ShardEpoch
}

// Stop tells a region to stop shards. A Stop is repeated until [ShardsStopped] answers.
type Stop struct {
	Kind   string
	Term   protocol.Term
	Shards []ShardEpoch
}

// StoppedShard is one shard of [ShardsStopped].
type StoppedShard struct {
	Shard protocol.ShardID
	Epoch protocol.Epoch
	Base  protocol.Epoch
	// Positions are those of the streams of Base, sorted by origin.
	Positions []protocol.Position
	// Snapshots is the memory of the entities that goes to the next home.
	Snapshots []protocol.Snapshot
}

// ShardsStopped answers [Stop] once all entities of the shards have stopped.
type ShardsStopped struct {
	Kind   string
	Term   protocol.Term
	Shards []StoppedShard
}

// Resume takes a [Stop] back, after the handoff timeout. It has no effect on a shard that
// has stopped. A Resume is repeated until [Resumed] or [ShardsStopped] answers.
type Resume struct {
	Kind   string
	Term   protocol.Term
	Shards []ShardEpoch
}

// Release tells a region to give up, in shards that it was told to stop, the
// entities that do not stop. A Release is repeated until [ShardsStopped] answers.
type Release struct {
	Kind   string
	Term   protocol.Term
	Shards []ShardEpoch
}

// Resumed answers [Resume]: the shards are being served again.
type Resumed struct {
	Kind   string
	Term   protocol.Term
	Shards []ShardEpoch
}

// SingletonMessage carries a message of the singleton rule by which the coordinator of a
// kind is chosen. Settings let a node that does not run the kind take part.
type SingletonMessage struct {
	Kind     string
	Settings Settings
	Message  singleton.Message
}

// KindName returns the name of the kind.
func (m Query) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m Refused) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m NoRegion) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m Report) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m Register) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m SettingsRefused) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m Map) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m NeedMap) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m Host) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m Hosting) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m Stop) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m ShardsStopped) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m Resume) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m Release) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m Resumed) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m SingletonMessage) KindName() string { return m.Kind }
