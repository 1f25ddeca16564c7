// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import "github.com/quorate/quorate/sharding/internal/cell"

// Sent returns how many messages this node has sent to the shard of an entity. While the
// shard lives on another node, that is the number of the last message in their stream.
func (g *Region[C]) Sent(id string) uint64 {
	var t cell.Tally
	g.r.region.SlotOf(id).Tally(&t)
	return t.Sent
}

// Refuse notes that the coordinator refuses the region, as the driver's goroutine does.
func (g *Region[C]) Refuse(err *SettingsError) { g.r.refuse(err) }
