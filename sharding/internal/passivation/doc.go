// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//quorate:core

// Package passivation decides which entity gives way when a node has more of a kind than it
// should. An [Order] knows the entities as [Handle] values: [Order.Enter] adds one that
// starts, [Order.Use] says that it was used, [Order.Leave] that it stops. While there are more than
// the limit, [Order.Victim] names the next to go. An entity that cannot go, since it is busy, stays
// aside until [Order.Return].
//
//	Enter ──> tracked ─Use──> tracked ─Leave──> (free)
//	             │  ^                              ^
//	      Victim v  │ Return, Use                  │
//	            aside ─────────────Leave───────────┘
//
// # Policies
//
//	least-recently-used     evicts what was not used for the longest time
//	most-recently-used      evicts what was used last: for loops over more than the limit
//	segmented               two lists; what is used a second time is protected. Karedla, Love and
//	                        Wherry, "Caching strategies to improve disk system performance", 1994
//	least-frequently-used   evicts what was used least often; with aging, what enters starts from the
//	                        frequency of the last one that went, so that old fame is outlived
//	composite               a window of what has just come before any of the four; what leaves the
//	                        window takes the place of the victim of the other part only if it was
//	                        used more often, by a sketch that remembers entities that have gone.
//	                        Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache
//	                        admission policy", 2017
//	w-tinylfu               composite with a segmented main part and a window of a hundredth, whose
//	                        share follows the hit rate
//
// # Guarantees
//
// Each call takes constant time, but that an order which grows copies its memory now and then, and
// that to put an entity back among those of its frequency passes over the lower frequencies. The same
// calls have the same outcome. An entry takes 24 bytes, and 8 to 16 more for the sketch of the last two
// policies.
//
// # Limits
//
// Not for several goroutines at once. The order does not know what a handle stands for, and evicts
// nothing by itself.
package passivation
