// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

// Limits of what the messages of sharding may hold.
const (
	// MaxKindBytes is the longest name of a kind, in bytes.
	MaxKindBytes = 128
	// MaxEntityBytes is the longest id of an entity, in bytes.
	MaxEntityBytes = 512
	// MaxSnapshotBytes is the longest snapshot of an entity, in bytes.
	MaxSnapshotBytes = 1 << 20
	// MaxShards is the largest number of shards of a kind.
	MaxShards = 65536
	// MaxKinds bounds the kinds that a node does not run itself and for which it keeps a promise to a coordinator.
	MaxKinds = 1024
	// DefaultMaxShards bounds the shards of all kinds together, unless an operator says otherwise.
	DefaultMaxShards = 4 * MaxShards
)
