// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"

	"github.com/cespare/xxhash/v2"
)

// layoutBits is by how many bits the number of a layout is shifted in a [ShardID].
const layoutBits = 16

// MaxLayouts bounds the numbers of the layouts of a kind.
const MaxLayouts = 1 << layoutBits

// Layout is one way of dividing the entities of a kind among shards. A kind begins with the layout of number 0, and
// each change of its number of shards begins the next one: two layouts are in force until the change is complete.
type Layout struct {
	Number uint16
	Shards uint32 // 1 to [MaxShards].
}

// Shard returns the i-th shard of the layout.
func (l Layout) Shard(i uint32) ShardID { return ShardID(uint32(l.Number)<<layoutBits | i) }

// ShardOf returns the shard of an entity whose hash [HashOf] has returned.
func (l Layout) ShardOf(hash uint64) ShardID {
	return l.Shard(uint32(hash % uint64(l.Shards))) // Below the number of shards.
}

// Has reports whether a shard is one of the layout.
func (l Layout) Has(s ShardID) bool { return s.Layout() == l.Number && s.Index() < l.Shards }

// Compare compares by number, and else by the number of shards.
func (l Layout) Compare(o Layout) int {
	return cmp.Or(cmp.Compare(l.Number, o.Number), cmp.Compare(l.Shards, o.Shards))
}

// Layout returns the number of the layout that the shard belongs to.
func (s ShardID) Layout() uint16 { return uint16(s >> layoutBits) }

// Index returns the index of the shard in its layout, from 0.
func (s ShardID) Index() uint32 { return uint32(s) & (1<<layoutBits - 1) }

// HashOf returns the hash of an entity's id by which its shards are found: the xxhash64 of its bytes,
// with seed 0.
func HashOf(entity string) uint64 { return xxhash.Sum64String(entity) }
