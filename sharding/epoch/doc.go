// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package epoch numbers the homes of shards, so that a storage can tell a former owner
// of an entity from the present one.
//
// The entity passes [Epoch], which it has from sharding.Context.Epoch, with each write; the
// storage keeps the highest epoch that it has seen of the entity and refuses what comes
// with a lower one. It compares epochs by [Epoch.Compare], or their texts as strings, or
// their byte forms as bytes: the order is the same. A storage that is a Go program of its
// own parses the text by [Parse] and needs nothing else of sharding.
//
// The package has no state. An epoch is a value; what changes one needs the same care with
// goroutines as any other variable. Both forms of a valid epoch stay as they are: what a
// storage has kept is read and compared by later releases.
package epoch
