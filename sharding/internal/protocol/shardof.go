// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

// HashName names the function of [ShardOf] among the settings of a kind.
const HashName = "xxhash64"

// ShardID names a shard of a kind: by its index in its layout, from 0, in the lower bits, and the number of the
// [Layout] in the upper ones. In the first layout, which has number 0, it is the index.
type ShardID uint32

// ShardOf returns the shard of an entity in the first layout of a kind: the xxhash64 of the bytes of its id,
// with seed 0, modulo the number of shards. It is part of the wire: all nodes
// must agree on it. It panics when shards is 0, which the
// validation of a kind refuses.
func ShardOf(entity string, shards uint32) ShardID {
	return ShardID(HashOf(entity) % uint64(shards))
}
