// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"cmp"
	"context"

	"github.com/quorate/quorate/gossip"
)

// The vocabulary between a coordinator and a strategy: regions and how well they suit
// for a shard; whether the time is good for moves; the requests for homes and for
// moves with their answers; the strategy itself.

// Region names the region of one node: the text form of the node's id. Regions are
// ordered as strings. The zero value names no region.
type Region string

// Shard is the number of a shard, from 0 up to the number of shards of the kind
// minus one. Once the number of shards of a kind has changed while it ran, the lower 16 bits are that
// number, and the bits above count the changes: a shard is another one after each.
type Shard uint32

// RegionState describes one region to a strategy.
type RegionState struct {
	// ID is the region's name, unique within a request and not empty.
	ID Region
	// Zone is where the node runs, such as a data centre; empty when there is
	// only one.
	Zone string
	// Roles are the roles of the node, sorted.
	Roles []string
	// Version is the app-version that the node runs, compared by
	// [gossip.CompareVersions]. Empty is the lowest.
	Version string
	// Leaving says that the node is leaving: its shards are being handed over, and it
	// takes no new ones.
	Leaving bool
	// Suspended says that the node has lost its standing, so that it hosts
	// nothing at present.
	Suspended bool
	// Unreachable says that the node does not answer. Its shards stay with it until it
	// has been removed.
	Unreachable bool
	// Capacity is the share of the shards that the region can bear, relative to other
	// regions: a region with capacity 4 gets twice the shards of a region with 2. The
	// zero value counts as 1, and a value above [MaxCapacity] as MaxCapacity.
	Capacity uint32
	// Load is the use of what the region can bear by the shards of the request, from 0 (idle)
	// to 1 (full); 0 also when it is not known. Package sharding tells the part of the
	// processors that handlers of the kind take, damped, with what shards that have just moved
	// are expected to add. Of the built-in strategies only [LoadAware] looks at it.
	Load float64
	// Shards are the shards whose home the region is, in the order in which
	// they were allocated to it, including those that are being moved away.
	Shards []Shard
}

// Eligible reports whether shards may be placed on the region: it is neither
// leaving nor suspended nor unreachable.
func (r *RegionState) Eligible() bool {
	return !r.Leaving && !r.Suspended && !r.Unreachable
}

// MaxCapacity is the greatest capacity; greater ones count as this. With it, products
// of sums of capacities and numbers of shards fit in 64 bits for up to 4,096 regions
// with all the shards that 32 bits can number.
const MaxCapacity = 1 << 20

// weight is the capacity within its bounds.
func (r *RegionState) weight() uint64 {
	return uint64(min(max(r.Capacity, 1), MaxCapacity))
}

// CompareSuitability orders regions by how well they are suited for one more
// shard, the best first: eligible before not eligible, then the higher
// app-version, then fewer shards relative to the capacity, then the lower id.
// The order is total on regions with different ids, so that equal requests
// cannot be answered in different ways.
func CompareSuitability(a, b *RegionState) int {
	if c := compareBool(b.Eligible(), a.Eligible()); c != 0 {
		return c
	}
	if c := gossip.CompareVersions(b.Version, a.Version); c != 0 {
		return c
	}
	if c := compareRatio(len(a.Shards), a.weight(), len(b.Shards), b.weight()); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// compareRatio compares a/wa with b/wb without rounding.
func compareRatio(a int, wa uint64, b int, wb uint64) int {
	return cmp.Compare(uint64(a)*wb, uint64(b)*wa)
}

// Fitness says whether the present is a good time to move shards. The zero value says
// that it is not.
type Fitness struct {
	// OneVersion: all regions run the same app-version. Otherwise a rolling update is
	// under way, and a shard that moves now would move again.
	OneVersion bool
	// NoneUnreachable: no member that has been up is unreachable. Otherwise shards may
	// soon need new homes anyway, and a move might wait for a node that is gone.
	NoneUnreachable bool
	// NoneJoining: no member is joining or weakly up, except for members that wait
	// because another member cannot reach them. Otherwise the number of regions is
	// about to change.
	NoneJoining bool
}

// Fit reports whether moves are advisable, and if not, the reason.
func (f Fitness) Fit() (bool, string) {
	switch {
	case !f.OneVersion:
		return false, "regions run different app-versions"
	case !f.NoneUnreachable:
		return false, "a member is unreachable"
	case !f.NoneJoining:
		return false, "a member is joining"
	default:
		return true, ""
	}
}

// Pending is a shard that needs a home.
type Pending struct {
	// Shard is the shard.
	Shard Shard
	// Requester is the region that first asked for the shard; empty when the shard is
	// allocated ahead of its first message. It need not be among the regions of the
	// request: a proxy asks too, and hosts nothing.
	Requester Region
}

// AllocateRequest asks for homes for a batch of shards.
type AllocateRequest struct {
	// Kind is the name of the kind of entity whose shards these are.
	Kind string
	// Regions are all regions of the kind, also those that are not eligible,
	// sorted by id.
	Regions []RegionState
	// Shards are the shards that need a home; none is in the list of a region, and
	// none occurs twice.
	Shards []Pending
	// Fitness is the state of the cluster. It is for information: a shard
	// without a home needs one at any time.
	Fitness Fitness
}

// Placement gives a shard a home.
type Placement struct {
	// Shard is one of the shards of the request.
	Shard Shard
	// Region is the new home, an eligible region of the request.
	Region Region
	// Reason is the reason for people; at most [MaxReason] bytes.
	Reason string
}

// AllocateResult answers an [AllocateRequest].
type AllocateResult struct {
	// Placements are the new homes, in the order of the shards in the request. A shard
	// that is missing stays without a home and is in the next request; after three
	// answers in a row that give no shard a home, [LeastShard] decides.
	Placements []Placement
	// Reason says why shards are missing; empty when no shard is. At most [MaxReason]
	// bytes.
	Reason string
}

// Move moves a shard from its home to another region.
type Move struct {
	// Shard is the shard that moves.
	Shard Shard
	// From is its present home.
	From Region
	// To is its next home, an eligible region of the request.
	To Region
	// Reason is the reason for people; at most [MaxReason] bytes.
	Reason string
}

// Budget bounds how many shards may be moving at one time.
type Budget struct {
	// Simultaneous is how many moves may be in flight in all, including those in
	// InFlight. The zero value permits none.
	Simultaneous int
	// PerRegion is how many moves may be in flight with one region as From or
	// To. The zero value means no limit but Simultaneous.
	PerRegion int
	// InFlight are the moves that have begun and not ended. Their shards are still in
	// the list of shards of their From region.
	InFlight []Move
}

// Room is how many moves may begin now; never negative.
func (b *Budget) Room() int {
	return max(0, b.Simultaneous-len(b.InFlight))
}

// RebalanceRequest asks which shards should move.
type RebalanceRequest struct {
	// Kind is the name of the kind of entity whose shards these are.
	Kind string
	// Regions are all regions of the kind with their shards, sorted by id.
	Regions []RegionState
	// Fitness says whether this is a good time for moves.
	Fitness Fitness
	// Budget bounds the moves of the answer.
	Budget Budget
}

// RebalanceResult answers a [RebalanceRequest].
type RebalanceResult struct {
	// Moves are the moves to begin now, the most useful first. Each is
	// independent of the others: any of them may be left out or may fail.
	Moves []Move
	// Reason says why no shard moves, or which imbalance the moves reduce. At most
	// [MaxReason] bytes.
	Reason string
}

// Strategy decides where shards live. The coordinator calls it, one call at a time, on
// a goroutine on which it may block until ctx ends; other users may call it from
// several goroutines. It decides from the request alone, must not modify or keep it,
// and the caller owns the result. An error, or an answer that fails [CheckAllocate] or
// [CheckRebalance], is an error of the strategy: the caller then lets [LeastShard]
// allocate, and moves no shard.
//
// The answers set no pace: a coordinator asks 20 times a second at most for each kind, and moves no shard a third time
// within a sharding.rebalance.idle-check in which no region comes, by whatever answer.
type Strategy interface {
	// Allocate chooses homes for shards that have none.
	Allocate(ctx context.Context, r AllocateRequest) (AllocateResult, error)
	// Rebalance proposes moves between regions.
	Rebalance(ctx context.Context, r RebalanceRequest) (RebalanceResult, error)
}

// Class is what a strategy promises beyond the interface. The zero value promises
// nothing.
type Class struct {
	// Pure: equal requests get equal answers, at any time and on any node. The
	// conformance suite in allocationtest demands it of strategies that declare it.
	Pure bool
}

// Classed is implemented by strategies that promise something about themselves.
type Classed interface {
	// Class is constant, does not block, and may be called at any time.
	Class() Class
}

// ClassOf returns the class of s if it implements [Classed], otherwise the zero class.
func ClassOf(s Strategy) Class {
	if c, ok := s.(Classed); ok {
		return c.Class()
	}
	return Class{}
}
