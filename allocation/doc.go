// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package allocation decides on which region each shard lives.
//
// A shard is a group of entities that lives and moves together, and a region is
// the part of one node that hosts shards. A coordinator asks a [Strategy] two
// questions: where shards without a home should go, asked in batches
// ([AllocateRequest]), and which shards should move, asked at intervals
// ([RebalanceRequest]). The strategy only proposes. Its caller runs
// [CheckAllocate] or [CheckRebalance] on each answer before using it, so that a
// strategy that is wrong, or that lives in another process, cannot place a
// shard on a region that is going away, or move more than the budget permits.
//
//	coordinator ── AllocateRequest ──▶ Strategy ── AllocateResult ──▶ CheckAllocate ──▶ new homes
//	coordinator ── RebalanceRequest ─▶ Strategy ── RebalanceResult ─▶ CheckRebalance ─▶ handoffs
//
// # Least shard
//
// [LeastShard] is the strategy that is built in. It gives each region a share
// of the shards in proportion to its capacity, rounded down or up, which is the
// quota rule of apportionment: a region with capacity c of a sum C, where N
// shards exist, hosts floor(N·c/C) or ceil(N·c/C) of them once it has settled.
// Its functions [LeastShard.DecideAllocate] and [LeastShard.DecideRebalance]
// are pure and never block, so that a protocol machine may call them directly.
//
// # Consistent hashing
//
// [ConsistentHashing] gives each shard the region that a hash chooses. A region that
// comes or goes moves the fewest shards, and kinds live together; the load is even on
// average only.
//
// # By load
//
// [LoadAware] goes by the load that regions report and by their capacities: it moves the fewest
// shards that bring every region within a tolerance of the mean, and knows zones.
//
// # By the program
//
// [External] follows what a program says in a [LocationTable], or in [Locations] of its own.
//
// # Least shard by a threshold
//
// [LeastShardThreshold] is the least-shard strategy of Akka and Pekko, for comparisons: it
// moves shards from the fullest region to the emptiest, a few a round, and knows no capacities.
//
// # Lifecycle and concurrency
//
// Nothing here starts a goroutine, reads a clock or does I/O. Requests and
// results are plain values. A strategy may be called from several goroutines
// at a time, must not modify what it is given, and must not keep it after it
// has returned. The built-in strategies are immutable and safe for concurrent use.
//
// # Guarantees
//
//   - An answer that passes the check names only shards and regions of its
//     request, each shard at most once, and no region that is leaving,
//     suspended or unreachable.
//   - The built-in strategies answer equal requests with equal results, whatever the
//     order in which the regions are listed; [External] while the locations are equal too.
//   - They settle: when the moves of one are carried out and nothing else changes, it soon
//     proposes none, and a cluster whose shards live where it wants them is left alone.
//
// # Non-guarantees
//
//   - Shards that are allocated one at a time over regions of unequal capacity
//     may drift from the quota by more than one shard; rebalancing mends that.
//   - While two app-versions are deployed, nothing is rebalanced. [LeastShard] then gives all
//     new shards to the regions of the higher one, since on an old node they would have to
//     move again, if these have enough of the capacity ([Config.PreferNewestAbove]).
package allocation
