// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/cespare/xxhash/v2"

// HashName names the function of [ShardOf] among the settings of a kind.
const HashName = "xxhash64"

// ShardID numbers the shards of a kind, from 0.
type ShardID uint32

// ShardOf returns the shard of an entity: the xxhash64 of the bytes of its id,
// with seed 0, modulo the number of shards. It is part of the wire: all nodes
// must agree on it. It panics when shards is 0, which the
// validation of a kind refuses.
func ShardOf(entity string, shards uint32) ShardID {
	return ShardID(xxhash.Sum64String(entity) % uint64(shards))
}
